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
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatch, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { rankedItems, referenceMetrics, type RankingProblem } from '../../support/reference/ranking.ts';

interface Case {
  readonly problem: RankingProblem;
  readonly seen: readonly Triple[];
  readonly test: readonly Triple[];
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

const RANK = 3;

/**
 * Whole numbers as factors, so that ties are common; ids are 10 u and 5 v. Test items of the last two ids are
 * unknown to the model.
 */
function randomCase(seed: number, users: number, items: number, policy: 'drop' | 'miss'): Case {
  const random = testRandom(seed + 1);
  const whole = () => Math.floor(random() * 4) - 1;
  const [userFactors, itemFactors] = [
    Float32Array.from({ length: users * RANK }, whole),
    Float32Array.from({ length: items * RANK }, whole),
  ];
  const [seen, test]: Triple[][] = [[], []];
  const sets = {
    seen: Array.from({ length: users }, () => new Set<number>()),
    test: Array.from({ length: users }, () => new Set<number>()),
  };
  for (let user = 0; user < users; user++) {
    for (let item = 0; item < items + 2; item++) {
      const draw = random();
      const triple = { user: 10 * user, item: 5 * item, rating: 1 + Math.floor(random() * 5) };
      if (draw < 0.3 && item < items) {
        seen.push(triple);
        sets.seen[user].add(item);
      }
      // Some pairs are in both, some users have no test item.
      if ((draw > 0.28 && draw < 0.3 && item < items) || (draw > 0.8 && user % 4 !== 3)) {
        test.push(triple);
        sets.test[user].add(item);
      }
    }
  }
  const strangers = Math.floor(random() * 3);
  for (let k = 0; k < strangers; k++)
    test.push({ user: -1 - k, item: 0, rating: 3 }, { user: -1 - k, item: 5, rating: 3 });
  const score = (user: number, item: number) =>
    Array.from(
      { length: RANK },
      (_, k) => userFactors[user * RANK + k] * itemFactors[item * RANK + k],
    ).reduce((sum, one) => sum + one, 0);
  return {
    problem: { score, users, items, ...sets, strangers, policy },
    seen,
    test,
    userFactors,
    itemFactors,
  };
}

function modelOf(session: Session, { problem: { users, items }, userFactors, itemFactors }: Case): Model {
  return new Model({
    rank: RANK,
    users: { type: 'int32', values: Int32Array.from({ length: users }, (_, u) => 10 * u) },
    items: { type: 'int32', values: Int32Array.from({ length: items }, (_, v) => 5 * v) },
    userFactors,
    itemFactors,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
  });
}

const rowsOf = (session: Session, rows: readonly Triple[]): Dataset =>
  session.from(ratingBatches([...rows], 7), ratingBatch([]).schema);

const close = (
  found: Readonly<Record<string, number>>,
  expected: Readonly<Record<string, number>>,
  within: number,
) => {
  for (const [name, value] of Object.entries(expected))
    expect(Math.abs(found[name] - value), `${name}: ${found[name]} and ${value}`).toBeLessThanOrEqual(within);
};

describe.each(['cpu', ...(noGpu ? [] : ['gpu'])] as const)('rankings on a %s', (device) => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: device as 'cpu' | 'gpu', workers: 1 });
  });
  afterAll(() => session?.close());

  it('have the metrics of an independent reference, ties included', async () => {
    const policies = fc.constantFrom('drop' as const, 'miss' as const);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 4, max: 12 }),
        fc.integer({ min: 3, max: 40 }),
        policies,
        async (seed, users, items, coldPairs) => {
          const one = randomCase(seed, users, items, coldPairs);
          fc.pre(
            one.problem.test.some((own, user) =>
              [...own].some((item) => item < items && !one.problem.seen[user].has(item)),
            ),
          );
          const ks = [1, 5, 100];
          const options: RankingOptions = {
            k: ks,
            exclude: rowsOf(session, one.seen),
            coldPairs,
            resamples: 0,
          };
          const found = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), options);
          const counts = Array.from(
            { length: items },
            (_, item) => one.problem.seen.filter((own) => own.has(item)).length,
          );
          const means = itemMeans(one);
          for (const k of ks) {
            close(found.metrics, referenceMetrics(one.problem, k), device === 'cpu' ? 1e-9 : 1e-5);
            close(
              found.baselines.popularity!,
              referenceMetrics({ ...one.problem, score: (_, item) => counts[item] }, k),
              1e-9,
            );
            close(
              found.baselines.itemMean!,
              referenceMetrics({ ...one.problem, score: (_, item) => means[item] }, k),
              1e-9,
            );
          }
          // Those that need not all places.
          const shallow = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
            ...options,
            exclude: rowsOf(session, one.seen),
            k: 5,
            metrics: ['ndcg', 'recall'],
          });
          expect(Object.keys(shallow.metrics)).toEqual(['recall@5', 'ndcg@5']);
          close(
            shallow.metrics,
            { 'ndcg@5': found.metrics['ndcg@5'], 'recall@5': found.metrics['recall@5'] },
            1e-9,
          );
        },
      ),
      { numRuns: device === 'cpu' ? 40 : 8, seed: 3 },
    );
  });

  it('put equal scores in the order of item ids', async () => {
    const one = randomCase(5, 6, 30, 'drop');
    const equal: Case = {
      ...one,
      userFactors: new Float32Array(6 * RANK),
      problem: { ...one.problem, score: () => 0 },
    };
    expect(rankedItems(equal.problem, 0)).toEqual(
      [...rankedItems(equal.problem, 0)].sort((left, right) => left - right),
    );
    const found = await modelOf(session, equal).evaluateRanking(rowsOf(session, one.test), {
      k: 7,
      exclude: rowsOf(session, one.seen),
    });
    close(found.metrics, referenceMetrics(equal.problem, 7), 1e-9);
  });
});

/** Means damped by 25 ratings of the mean of all. */
function itemMeans({ seen, problem: { items } }: Case): number[] {
  const mean = seen.reduce((sum, { rating }) => sum + rating, 0) / seen.length;
  return Array.from({ length: items }, (_, item) => {
    const own = seen.filter((row) => row.item === 5 * item);
    return (own.reduce((sum, { rating }) => sum + rating, 0) + 25 * mean) / (own.length + 25);
  });
}

describe('an evaluation of rankings', () => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => session?.close());

  const evaluated = async (one: Case, options: RankingOptions = {}) => {
    const events: ProgressEvent[] = [];
    const result = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
      k: 5,
      exclude: rowsOf(session, one.seen),
      ...options,
      onEvent: (event) => events.push(event),
    });
    return {
      result,
      warnings: events.flatMap((event) => (event.type === 'warning' ? [event.text] : [])),
      notes: events.flatMap((event) => (event.type === 'note' ? [event.text] : [])),
    };
  };

  it('counts cold, leaked, repeated and unknown pairs', async () => {
    const one = randomCase(11, 9, 20, 'drop');
    const leaked = one.test.filter(({ user, item }) =>
      one.seen.some((row) => row.user === user && row.item === item),
    ).length;
    const cold = one.test.filter(({ user, item }) => user < 0 || item >= 100).length;
    const { result, warnings, notes } = await evaluated({
      ...one,
      seen: [...one.seen, { user: 999, item: 0, rating: 1 }, { user: 0, item: 9999, rating: 1 }],
      test: [...one.test, ...one.test.filter(({ user, item }) => user === 10 && item < 100)],
    });
    const again = one.test.filter(({ user, item }) => user === 10 && item < 100);
    const leakedAgain = again.filter(({ user, item }) =>
      one.seen.some((row) => row.user === user && row.item === item),
    ).length;
    expect(leaked).toBeGreaterThan(0);
    expect(result).toMatchObject({
      pairs: one.test.length + again.length,
      coldPairs: cold,
      coldUsers: one.problem.strangers,
      unknownExcluded: 2,
    });
    expect(result.leakedPairs + result.repeatedPairs).toBe(leaked + again.length);
    expect(result.leakedPairs).toBeGreaterThanOrEqual(leaked);
    expect(result.leakedPairs).toBeLessThanOrEqual(leaked + leakedAgain);
    expect(warnings.join()).toMatch(
      /test pairs are among the excluded ones too: test data has leaked into training/,
    );
    expect(notes.join()).toMatch(/2 excluded pairs have a user or an item that the model does not know/);
  });

  it('ranks only pairs of the least rating', async () => {
    const one = randomCase(12, 9, 20, 'drop');
    const { result } = await evaluated(one, { minRating: 4 });
    expect(result.irrelevantPairs).toBe(one.test.filter(({ rating }) => rating < 4).length);
    const few = one.test.filter(({ rating }) => rating >= 4);
    const test = one.problem.test.map(
      (own, user) =>
        new Set(
          [...own].filter((item) => few.some((row) => row.user === 10 * user && row.item === 5 * item)),
        ),
    );
    close(result.metrics, referenceMetrics({ ...one.problem, test }, 5), 1e-9);
  });

  it('has intervals around the means, the same for a seed', async () => {
    const one = randomCase(13, 12, 30, 'drop');
    const [first, again, other] = [
      await evaluated(one),
      await evaluated(one),
      await evaluated(one, { seed: 9 }),
    ];
    expect(again.result.intervals).toEqual(first.result.intervals);
    expect(other.result.intervals).not.toEqual(first.result.intervals);
    expect(Object.keys(first.result.intervals)).toEqual([
      'precision@5',
      'recall@5',
      'recall-min@5',
      'ndcg@5',
      'map@5',
      'hit-rate@5',
      'mrr',
      'auc',
    ]);
    for (const [name, [low, high]] of Object.entries(first.result.intervals)) {
      expect(low).toBeLessThan(first.result.metrics[name]);
      expect(high).toBeGreaterThan(first.result.metrics[name]);
    }
    expect((await evaluated(one, { resamples: 0 })).result.intervals).toEqual({});
  });

  it('warns where nothing is excluded, and where the model was trained to predict ratings', async () => {
    const one = randomCase(14, 6, 20, 'drop');
    const { result, warnings } = await evaluated(one, { exclude: undefined });
    expect(warnings).toEqual([expect.stringMatching(/no pairs are excluded/)]);
    expect(result.baselines).toEqual({});
    expect(result.warnings).toEqual([{ code: 'nothing-excluded', text: warnings[0] }]);
    expect((await evaluated(one)).result.warnings.map(({ code }) => code)).not.toContain('nothing-excluded');
    const rows = randomRatings(3, 30, 20, 300);
    const model = await new ALS({ rank: 2, maxIter: 2 }).fit(rowsOf(session, rows));
    const events: ProgressEvent[] = [];
    await model.evaluateRanking(rowsOf(session, [{ user: rows[0].user, item: rows[0].item, rating: 1 }]), {
      onEvent: (event) => events.push(event),
    });
    expect(events).toContainEqual({
      type: 'warning',
      text: expect.stringMatching(/trained to predict ratings \(RMSE\), not to rank/),
    });
  });

  it('refuses an empty test set, and has no metrics where no user is known', async () => {
    const one = randomCase(15, 6, 20, 'drop');
    await expect(evaluated({ ...one, test: [] })).rejects.toThrow('there are no pairs to evaluate');
    const { result } = await evaluated({ ...one, test: [{ user: -5, item: 0, rating: 1 }] });
    expect(result).toMatchObject({ users: 0, coldUsers: 1, pairs: 1, coldPairs: 1 });
    expect(result.metrics['ndcg@5']).toBeNaN();
    const misses = await evaluated(
      { ...one, test: [{ user: -5, item: 0, rating: 1 }] },
      { coldPairs: 'miss' },
    );
    expect(misses.result).toMatchObject({ users: 1, metrics: { 'ndcg@5': 0, mrr: 0, auc: 0 } });
  });

  it.each([
    [{ k: 0 }, /k must be whole numbers from 1 to 10,000, got 0/],
    [{ k: [] }, /got none/],
    [{ metrics: ['ndgc'] }, /metrics must be a list of ranking metrics, got "ndgc"/],
    [{ coldPairs: 'skip' }, /coldPairs must be drop or miss/],
    [{ resamples: -1 }, /resamples must be a whole number/],
    [{ minRating: NaN }, /minRating must be a number/],
    [{ top: 3 }, /unknown option top of evaluateRanking/],
  ])('refuses the options %j', async (options, message) => {
    const one = randomCase(16, 6, 20, 'drop');
    await expect(
      modelOf(session, one).evaluateRanking(rowsOf(session, one.test), options as unknown as RankingOptions),
    ).rejects.toThrow(message);
  });
});
