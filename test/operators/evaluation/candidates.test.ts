import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, Session } from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import type { Triple } from '../../support/ratings.ts';
import { type Case, dataset, modelOf, randomCase, RANK } from './candidate-cases.ts';

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
