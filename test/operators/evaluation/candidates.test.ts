import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ALS,
  type Dataset,
  Model,
  type ProgressEvent,
  type RankingOptions,
  Session,
} from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { ratingBatch, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';

const RANK = 3;

interface Case {
  readonly users: number;
  readonly items: number;
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
  readonly seen: readonly Triple[];
  readonly test: readonly Triple[];
  readonly candidates: readonly Triple[];
}

/**
 * Whole numbers as factors, so that ties are common. Some candidates are seen, positives, repeated, or
 * unknown; some users have none.
 */
function randomCase(seed: number, users: number, items: number): Case {
  const random = testRandom(seed + 1);
  const whole = () => Math.floor(random() * 4) - 1;
  const [userFactors, itemFactors] = [
    Float32Array.from({ length: users * RANK }, whole),
    Float32Array.from({ length: items * RANK }, whole),
  ];
  const [seen, test, candidates]: Triple[][] = [[], [], []];
  for (let user = 0; user < users; user++) {
    for (let item = 0; item < items + 2; item++) {
      const row = { user, item, rating: 1 };
      const draw = random();
      if (draw < 0.3 && item < items) seen.push(row);
      else if (draw > 0.8 && user % 5 !== 4) test.push(row);
      if (random() < 0.4 && user % 4 !== 3) candidates.push(row);
      if (random() < 0.05) candidates.push(row);
    }
  }
  candidates.push({ user: users + 7, item: 0, rating: 1 });
  return { users, items, userFactors, itemFactors, seen, test, candidates };
}

const dataset = (session: Session, rows: readonly Triple[]): Dataset =>
  session.from(ratingBatches([...rows], 7), ratingBatch([]).schema);

function modelOf(session: Session, { users, items, userFactors, itemFactors }: Case): Model {
  const ids = (count: number) =>
    ({ type: 'int32', values: Int32Array.from({ length: count }, (_, id) => id) }) as const;
  return new Model({
    rank: RANK,
    users: ids(users),
    items: ids(items),
    userFactors,
    itemFactors,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
  });
}

/** Hit rate, NDCG and AUC by their definitions, from sorted lists; also the counts. */
function reference(
  one: Case,
  k: number,
  score: (user: number, item: number) => number,
  policy: 'drop' | 'miss',
) {
  const of = (rows: readonly Triple[], user: number) =>
    new Set(rows.filter((row) => row.user === user && row.item < one.items).map(({ item }) => item));
  const sums = { 'hit-rate': 0, ndcg: 0, auc: 0 };
  const front = new Set<number>();
  let [users, without, idle] = [0, 0, 0];
  for (let user = 0; user < one.users; user++) {
    const [seen, positives] = [of(one.seen, user), of(one.test, user)];
    const unknown =
      policy === 'miss' ? one.test.filter((row) => row.user === user && row.item >= one.items).length : 0;
    if (positives.size + unknown === 0) {
      idle += one.candidates.filter((row) => row.user === user && row.item < one.items).length;
      continue;
    }
    const others = [...of(one.candidates, user)].filter((item) => !seen.has(item) && !positives.has(item));
    if (others.length === 0) {
      without++;
      continue;
    }
    users++;
    const list = [...others, ...positives].sort(
      (left, right) => score(user, right) - score(user, left) || left - right,
    );
    const top = list.slice(0, k);
    for (const item of top) front.add(item);
    const wanted = positives.size + unknown;
    const ideal = Array.from({ length: Math.min(k, wanted) }, (_, i) => 1 / Math.log2(i + 2)).reduce(
      (sum, value) => sum + value,
      0,
    );
    sums['hit-rate'] += top.some((item) => positives.has(item)) ? 1 : 0;
    sums.ndcg +=
      top.reduce((sum, item, place) => sum + (positives.has(item) ? 1 / Math.log2(place + 2) : 0), 0) / ideal;
    const ordered = [...positives].reduce(
      (sum, item) =>
        sum + others.filter((other) => list.indexOf(other) > list.indexOf(item)).length / others.length,
      0,
    );
    sums.auc += ordered / wanted;
  }
  return {
    metrics: {
      [`hit-rate@${k}`]: sums['hit-rate'] / users,
      [`ndcg@${k}`]: sums.ndcg / users,
      auc: sums.auc / users,
      [`coverage@${k}`]: front.size / one.items,
    },
    users,
    without,
    idle,
  };
}

const METRICS = ['hit-rate', 'ndcg', 'auc', 'coverage'] as const;

describe.each(['cpu', ...(noGpu ? [] : ['gpu'])] as const)('rankings of candidates on a %s', (device) => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: device as 'cpu' | 'gpu', workers: 1 });
  });
  afterAll(() => session?.close());

  it('have the metrics and counts of an independent reference, ties included', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 4, max: 12 }),
        fc.integer({ min: 5, max: 30 }),
        fc.constantFrom('drop' as const, 'miss' as const),
        async (seed, users, items, coldPairs) => {
          const one = randomCase(seed, users, items);
          const score = (user: number, item: number) =>
            Array.from(
              { length: RANK },
              (_, f) => one.userFactors[user * RANK + f] * one.itemFactors[item * RANK + f],
            ).reduce((sum, value) => sum + value, 0);
          const owners = Array.from(
            { length: items },
            (_, item) => one.seen.filter((row) => row.item === item).length,
          );
          const own = reference(one, 3, score, coldPairs);
          fc.pre(own.users > 0);
          const found = await modelOf(session, one).evaluateRanking(dataset(session, one.test), {
            k: 3,
            exclude: dataset(session, one.seen),
            candidates: dataset(session, one.candidates),
            metrics: METRICS,
            coldPairs,
            resamples: 0,
          });
          for (const [name, value] of Object.entries(own.metrics))
            expect(found.metrics[name], name).toBeCloseTo(value, 6);
          for (const [name, value] of Object.entries(
            reference(one, 3, (_, item) => owners[item], coldPairs).metrics,
          ))
            expect(found.baselines.popularity?.[name], name).toBeCloseTo(value, 9);
          const cold = one.candidates.filter(({ user, item }) => user >= users || item >= items).length;
          expect(found.users).toBe(own.users);
          expect(found.candidates).toMatchObject({
            pairs: one.candidates.length,
            coldPairs: cold,
            usersWithout: own.without,
            idlePairs: own.idle,
          });
        },
      ),
      { numRuns: device === 'cpu' ? 40 : 6, seed: 5 },
    );
  });
});

const cmn = dataFolder('cmn-citeulike-a');

it.skipIf(!cmn)(
  'reach the figures that iALS has on cmn-citeulike-a, with the candidates of train left out',
  async () => {
    await using session = await Session.create({ device: 'cpu', workers: 2 });
    const [train, test, candidates] = ['train', 'test', 'candidates'].map((name) =>
      session.read.parquet(join(cmn as string, `${name}.parquet`)),
    );
    const model = await new ALS({
      implicitPrefs: true,
      rank: 64,
      alpha: 1,
      unobservedWeight: 0.003,
      regParam: 0.021,
      regExponent: 1,
      maxIter: 16,
    }).fit(train);
    const {
      metrics,
      users,
      candidates: counts,
    } = await model.evaluateRanking(test, {
      candidates,
      exclude: train,
      metrics: ['hit-rate', 'ndcg'],
      coldPairs: 'miss',
      resamples: 0,
    });
    expect(users).toBe(5551);
    expect(counts).toMatchObject({ pairs: 555_100, excludedPairs: 1115, usersWithout: 0 });
    expect(metrics['hit-rate@10']).toBeGreaterThan(0.915);
    expect(metrics['hit-rate@10']).toBeLessThan(0.927);
    expect(metrics['ndcg@10']).toBeGreaterThan(0.722);
    expect(metrics['ndcg@10']).toBeLessThan(0.736);
  },
  120_000,
);

describe('candidates', () => {
  let session: Session;
  const one = randomCase(3, 9, 20);
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => session?.close());

  const evaluated = async (candidates: readonly Triple[], options: RankingOptions = {}) => {
    const events: ProgressEvent[] = [];
    const found = await modelOf(session, one).evaluateRanking(dataset(session, one.test), {
      k: 3,
      exclude: dataset(session, one.seen),
      candidates: dataset(session, candidates),
      resamples: 0,
      ...options,
      onEvent: (event) => events.push(event),
    });
    return { found, warnings: events.flatMap((event) => (event.type === 'warning' ? [event.text] : [])) };
  };

  it('that the model does not know, and users without any, are warned of', async () => {
    const first = one.test.find(({ item }) => item < one.items)!.user;
    const rows = [0, 1, 2, 3].map((item) => ({ user: first, item, rating: 1 }));
    const { found, warnings } = await evaluated([
      ...rows,
      { user: 77, item: 1, rating: 1 },
      { user: first, item: 99, rating: 1 },
    ]);
    expect(found).toMatchObject({ users: 1, candidates: { pairs: 6, coldPairs: 2 } });
    expect(warnings).toContain(
      '2 candidates have a user or an item that the model does not know, and are not ranked',
    );
    expect(warnings).toContain(
      `${found.candidates?.usersWithout} users with test pairs have no candidate to rank them with, and are not measured`,
    );
  });

  it('of every item give the full rankings', async () => {
    const all = Array.from({ length: one.users * one.items }, (_, k) => ({
      user: Math.floor(k / one.items),
      item: k % one.items,
      rating: 1,
    }));
    const { found } = await evaluated(all, { coldPairs: 'miss' });
    const whole = await modelOf(session, one).evaluateRanking(dataset(session, one.test), {
      k: 3,
      exclude: dataset(session, one.seen),
      resamples: 0,
      coldPairs: 'miss',
    });
    expect(found.users).toBe(whole.users);
    for (const [name, value] of Object.entries(whole.metrics))
      expect(found.metrics[name], name).toBeCloseTo(value, 9);
    for (const [name, value] of Object.entries(whole.baselines.popularity!))
      expect(found.baselines.popularity?.[name], name).toBeCloseTo(value, 9);
  });

  it('of some users are drawn with them', async () => {
    const { found } = await evaluated(one.candidates, { rankUsers: 2 });
    expect(found).toMatchObject({ users: 2 });
    expect(found.availableUsers).toBeGreaterThan(2);
  });

  it('are refused where there is none, and without a column of items', async () => {
    await expect(evaluated([])).rejects.toThrow('there are no candidates');
    const named = session.from([ratingBatch([{ user: 0, item: 0, rating: 1 }]).select(['user', 'rating'])]);
    await expect(
      modelOf(session, one).evaluateRanking(dataset(session, one.test), { candidates: named }),
    ).rejects.toThrow(/"item"/);
    await expect(
      modelOf(session, one).evaluateRanking(dataset(session, one.test), {
        candidates: [] as unknown as Dataset,
      }),
    ).rejects.toThrow(/the option candidates of evaluateRanking/);
  });
});
