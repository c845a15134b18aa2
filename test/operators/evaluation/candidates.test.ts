import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, Session } from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { chancesOf, coverageOf, metricsOfList } from '../../support/reference/ranking.ts';
import type { Triple } from '../../support/ratings.ts';
import { type Case, dataset, modelOf, randomCase, RANK } from './candidate-cases.ts';
import { sampleSize } from '../../support/deep.ts';

/** Hit rate, NDCG and AUC by their definitions, also the counts. */
function reference(
  one: Case,
  k: number,
  score: (user: number, item: number) => number,
  policy: 'drop' | 'miss',
) {
  const of = (rows: readonly Triple[], user: number) =>
    new Set(rows.filter((row) => row.user === user && row.item < one.items).map(({ item }) => item));
  const sums = { 'hit-rate': 0, ndcg: 0, auc: 0 };
  const front: number[][] = [];
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
    const list = [...others, ...positives];
    const scores = list.map((item) => score(user, item));
    const isPositive = list.map((item) => positives.has(item));
    const measured = metricsOfList(scores, isPositive, positives.size + unknown, k);
    for (const name of ['hit-rate', 'ndcg', 'auc'] as const) sums[name] += measured[name];
    const chances = chancesOf(scores, k);
    front.push(
      Array.from({ length: one.items }, (_, item) => (list.includes(item) ? chances[list.indexOf(item)] : 0)),
    );
  }
  return {
    metrics: {
      [`hit-rate@${k}`]: sums['hit-rate'] / users,
      [`ndcg@${k}`]: sums.ndcg / users,
      auc: sums.auc / users,
      [`coverage@${k}`]: coverageOf(front),
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
      { numRuns: sampleSize(device === 'cpu' ? 40 : 6), seed: 5 },
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
