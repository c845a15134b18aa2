import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset, TrainValidationSplit, type Trial } from '../../index.ts';
import type { TrialParams } from '../../api/validation/tuning/search-space.ts';
import { validationSeed } from '../../api/validation/tuning/train-validation-split.ts';
import { ratingsBatch } from '../support/tuning-ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

let ratings: Dataset;

const session = await cpuSession();
beforeAll(async () => {
  ratings = session.from([ratingsBatch(60, 40, 1500)]);
});

describe('baselines of a search', () => {
  const implicit = (params: TrialParams) => new ALS({ maxIter: 3, implicitPrefs: true, ...params });
  const space = { rank: [2, 6] };
  const all = ['popularity', 'item-mean', 'item-knn', 'ease'] as const;

  it.each([
    ['ndcg@20', 'all'],
    ['recall@5', 25],
  ] as const)('have the values of evaluateRanking by %s of %s users', async (metric, rankUsers) => {
    const notes: string[] = [];
    const { baselines, best, model } = await new TrainValidationSplit({
      estimator: implicit,
      space,
      metric,
      rankUsers,
      baselines: all,
    }).fit(ratings, { onEvent: (event) => void (event.type === 'note' && notes.push(event.text)) });
    const [train, validation] = ratings.randomSplit([0.9, 0.1], { seed: validationSeed(0) });
    const alone = await implicit({ ...best.params, maxIter: best.bestIteration }).fit(train);
    const [name, k] = metric.split('@');
    const expected = await alone.evaluateRanking(validation, {
      exclude: train,
      metrics: [name as 'ndcg'],
      k: Number(k ?? 10),
      rankUsers,
      baselines: all,
      resamples: 0,
    });
    expect(best.value).toBeCloseTo(expected.metrics[metric], 6);
    expect(Object.keys(baselines)).toEqual(['popularity', 'itemMean', 'itemKnn', 'ease']);
    for (const [baseline, value] of Object.entries(baselines))
      expect(value, baseline).toBe(expected.baselines[baseline as 'ease']?.[metric]);
    expect(notes[0]).toBe(`baseline popularity: ${metric} ${baselines.popularity?.toFixed(4)}`);
    expect(notes[2]).toMatch(/^baseline item-knn: /);
    expect(model.metadata.tuning).toMatchObject({ baselines: JSON.parse(JSON.stringify(baselines)) });
  });

  it('are popularity and item mean by default, none if not wanted, and means for errors', async () => {
    const of = async (options: object) => {
      const tuner = new TrainValidationSplit({ estimator: implicit, grid: [{ rank: 2 }], ...options });
      return (await tuner.fit(ratings)).baselines;
    };
    expect(Object.keys(await of({ metric: 'ndcg@5' }))).toEqual(['popularity', 'itemMean']);
    expect(await of({ metric: 'ndcg@5', baselines: false })).toEqual({});
    const errors = await new TrainValidationSplit({
      estimator: (params) => new ALS({ maxIter: 2, ...params }),
      grid: [{ rank: 2 }],
      metric: 'mae',
    }).fit(ratings);
    expect(errors.baselines).toEqual({
      mean: errors.best.baselines?.mean.mae,
      dampedMeans: errors.best.baselines?.dampedMeans.mae,
    });
  });

  it('leave the item mean out where there are no ratings', async () => {
    const clicks = ratings.select('user', 'item');
    const tuner = new TrainValidationSplit({
      estimator: implicit,
      grid: [{ rank: 2 }],
      metric: 'ndcg@5',
      baselines: all,
    });
    expect(Object.keys((await tuner.fit(clicks)).baselines)).toEqual(['popularity', 'itemKnn', 'ease']);
  });

  it('are refused before the first trial', async () => {
    const make = (options: object) =>
      new TrainValidationSplit({ estimator: implicit, grid: [{ rank: 2 }], metric: 'ndcg@5', ...options });
    expect(() => make({ baselines: ['item-nn'] })).toThrow(
      'baselines must be true, false or a list of baselines, got "item-nn"',
    );
    expect(() => make({ baselines: ['ease'], metric: 'rmse' })).toThrow('and the metric is rmse');
    const many = session.from([ratingsBatch(3000, 25_000, 100_000)]);
    const ended: Trial[] = [];
    await expect(
      make({ baselines: ['ease'] }).fit(many, { onTrial: (trial) => void ended.push(trial) }),
    ).rejects.toThrow('the baseline ease inverts a matrix of all items, and has at most 20,000');
    expect(ended).toEqual([]);
  });

  it('need validation ratings that can be read again, if they are asked for', async () => {
    const batch = ratingsBatch(60, 40, 3000);
    const once = () => session.from([batch][Symbol.iterator]());
    const make = (options: object) =>
      new TrainValidationSplit({ estimator: implicit, grid: [{ rank: 2 }], metric: 'ndcg@5', ...options });
    const { baselines, best } = await make({}).fit(ratings, { validation: once() });
    expect([baselines, best.value > 0]).toEqual([{}, true]);
    await expect(make({ baselines: all }).fit(ratings, { validation: once() })).rejects.toThrow(
      'baselines reads the rows more than once',
    );
  });
});
