import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RankingOptions, Session } from '../../../index.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { referenceMetrics } from '../../support/reference/ranking.ts';
import { type Case, close, modelOf, randomCase, RANK, rowsOf } from './ranking-cases.ts';
import { sampleSize } from '../../support/deep.ts';

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
      { numRuns: sampleSize(device === 'cpu' ? 30 : 6), seed: 3 },
    );
  });

  it('have the values of a random order for equal scores', async () => {
    const one = randomCase(5, 6, 30, 'drop');
    const equal: Case = {
      ...one,
      userFactors: new Float32Array(6 * RANK),
      problem: { ...one.problem, score: () => 0 },
    };
    const found = await modelOf(session, equal).evaluateRanking(rowsOf(session, one.test), {
      k: 7,
      exclude: rowsOf(session, one.seen),
    });
    close(found.metrics, referenceMetrics(equal.problem, 7), 1e-9);
    expect(found.metrics.auc).toBe(0.5);
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
