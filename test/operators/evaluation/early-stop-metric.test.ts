import { describe, expect, it } from 'vitest';
import { ALS, type ProgressEvent, SGD } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';

const rows = [
  ...new Map(randomRatings(5, 120, 60, 3000).map((row) => [`${row.user} ${row.item}`, row])).values(),
];

describe('early stop by a ranking metric', async () => {
  const session = await cpuSession();
  const [train, test] = session.from(ratingBatches(rows)).randomSplit([0.8, 0.2], { seed: 2 });

  it.each([
    [
      'implicit ALS',
      () =>
        new ALS({
          rank: 6,
          maxIter: 30,
          seed: 1,
          implicitPrefs: true,
          earlyStop: 2,
          earlyStopMetric: 'ndcg@20',
        }),
    ] as const,
    [
      'ALS with biases',
      () => new ALS({ rank: 3, maxIter: 30, seed: 1, biases: true, earlyStop: 2, earlyStopMetric: 'auc' }),
    ] as const,
    [
      'SGD',
      () =>
        new SGD({
          rank: 3,
          maxIter: 30,
          seed: 1,
          schedule: 'wavefront',
          biases: true,
          earlyStop: 2,
          earlyStopMetric: 'recall@5',
        }),
    ] as const,
  ])('ends %s two rounds behind the best, which is kept and measures the same', async (_, estimator) => {
    const events: ProgressEvent[] = [];
    const one = estimator();
    const model = await one.fit(train, { validation: test, onEvent: (event) => events.push(event) });
    const { iterations, bestIteration } = model.training!;
    const name = one.params.earlyStopMetric!;
    const values = iterations.map(({ testMetrics }) => testMetrics![name]);
    expect(values.every((value) => value > 0 && value < 1)).toBe(true);
    expect(values.indexOf(Math.max(...values))).toBe(bestIteration - 1);
    if (iterations.length < 30) {
      expect(iterations).toHaveLength(bestIteration + 2);
      expect(events).toContainEqual({
        type: 'note',
        text: expect.stringContaining(
          `no better validation ${name} than ${Math.max(...values).toFixed(4)} of iteration ${bestIteration}`,
        ),
      });
    }
    const [metric, k = '10'] = name.split('@');
    const found = await model.evaluateRanking(test, {
      k: Number(k),
      exclude: train,
      metrics: [metric as 'ndcg'],
      resamples: 0,
      baselines: false,
    });
    expect(Math.abs(found.metrics[name] - values[bestIteration - 1])).toBeLessThan(1e-5);
  });
});

describe('the parameter earlyStopMetric', () => {
  it('is refused where it cannot be used, or does not exist', () => {
    expect(() => new ALS({ earlyStopMetric: 'ndcg@20' })).toThrow('earlyStopMetric acts only with earlyStop');
    expect(() => new SGD({ earlyStopMetric: 'ndcg@20' })).toThrow('earlyStopMetric acts only with earlyStop');
    // @ts-expect-error No metric of this name.
    expect(() => new ALS({ earlyStop: 2, earlyStopMetric: 'ndgc@20' })).toThrow(
      'earlyStopMetric must be a metric such as ndcg@20, recall@10, mrr or auc, got "ndgc@20"',
    );
    // @ts-expect-error Without its k.
    expect(() => new SGD({ earlyStop: 2, earlyStopMetric: 'ndcg' })).toThrow('got "ndcg"');
    expect(() => new ALS({ implicitPrefs: true, earlyStop: 2 })).toThrow(
      'earlyStop cannot be used with implicitPrefs on the RMSE, which implicit data do not have',
    );
    expect(new ALS({ earlyStop: 2, earlyStopMetric: 'rmse' }).params.earlyStopMetric).toBe('rmse');
  });
});
