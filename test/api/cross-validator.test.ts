import { describe, expect, it } from 'vitest';
import {
  ALS,
  CancelledError,
  CrossValidator,
  DivergedError,
  paramGrid,
  type ProgressEvent,
  SGD,
  TrainValidationSplit,
  UsageError,
} from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { ratingBatches, shuffled, testRandom, type Triple } from '../support/ratings.ts';

/** Ratings of rank 2 with a little noise: a rank of 2 explains them, and a large λ does not. */
function lowRankRatings(): Triple[] {
  const random = testRandom(8);
  const factors = (count: number) => Array.from({ length: count }, () => [random() + 0.5, random() * 2 - 1]);
  const [users, items] = [factors(60), factors(40)];
  const rows = users.flatMap((x, user) =>
    items.map((y, item) => ({ user, item, rating: 2 * (x[0] * y[0] + x[1] * y[1]) + 0.1 * random() })),
  );
  return shuffled(rows, 2).slice(0, 1200);
}

const rows = lowRankRatings();
const session = await cpuSession();
const estimator = (params: { rank?: number; regParam?: number }) => ALS.spark({ maxIter: 8, ...params });

describe('a cross-validator', () => {
  it('finds the best combination and trains it on all ratings', async () => {
    const ratings = session.from(ratingBatches(rows));
    const grid = paramGrid({ rank: [1, 2], regParam: [0.01, 1] });
    const { best, results, model } = await new CrossValidator({ estimator, grid, numFolds: 3, seed: 7 }).fit(
      ratings,
    );
    expect(results.map(({ params }) => params)).toEqual(grid);
    expect(best.params).toEqual({ rank: 2, regParam: 0.01 });
    expect(best.rmse).toBe(Math.min(...results.map(({ rmse }) => rmse)));
    expect(best.rmse).toBeLessThan(0.1);
    for (const { rmse, folds } of results) {
      expect(folds.reduce((sum, { pairs }) => sum + pairs, 0)).toBe(rows.length);
      expect(rmse).toBeCloseTo(folds.reduce((sum, fold) => sum + fold.rmse, 0) / 3, 12);
    }
    expect(model.training?.ratings).toBe(rows.length);
    expect(model.training?.params).toMatchObject({ rank: 2, regParam: 0.01 });
  });

  it('gives the errors of training and evaluating each fold by hand, for rows in any order', async () => {
    const validator = new CrossValidator({
      estimator,
      grid: [{ rank: 2, regParam: 0.05 }],
      numFolds: 3,
      seed: 1,
    });
    const { best } = await validator.fit(session.from(ratingBatches(rows)));
    const folds = session.from(ratingBatches(shuffled(rows, 5))).kFold(3, { seed: 1 });
    for (const [i, { train, test }] of folds.entries()) {
      const { rmse, mae, baselines } = await (await estimator(best.params).fit(train)).evaluate(test);
      expect(best.folds[i].rmse).toBeCloseTo(rmse, 10);
      expect(best.folds[i].mae).toBeCloseTo(mae, 10);
      expect(best.folds[i].baselines?.dampedMeans.rmse).toBeCloseTo(
        baselines?.dampedMeans.rmse as number,
        10,
      );
    }
    for (const name of ['mean', 'dampedMeans'] as const)
      expect(best.baselines?.[name].mae).toBeCloseTo(
        best.folds.reduce((sum, fold) => sum + (fold.baselines?.[name].mae as number), 0) / 3,
        10,
      );
  });

  it('records a combination that diverges, and goes on', async () => {
    const grid = [{ learningRate: 1e6 }, { learningRate: 0.1 }];
    const estimator = (params: { learningRate: number }) =>
      new SGD({ rank: 2, maxIter: 2, schedule: 'blocks', ...params });
    const ratings = session.from(ratingBatches(rows.slice(0, 250)));
    const { best, results } = await new CrossValidator<Parameters<typeof estimator>[0]>({
      estimator,
      grid,
    }).fit(ratings);
    expect(results[0]).toMatchObject({ params: grid[0], rmse: Number.NaN, folds: [] });
    expect(results[0].failure).toBeInstanceOf(DivergedError);
    expect(best.params).toBe(grid[1]);
    await expect(new CrossValidator({ estimator, grid: grid.slice(0, 1) }).fit(ratings)).rejects.toThrow(
      DivergedError,
    );
  });

  it('compares models of implicit data by rankings, and refuses errors at once', async () => {
    const implicit = (params: { rank?: number }) => new ALS({ implicitPrefs: true, maxIter: 2, ...params });
    const grid = paramGrid({ rank: [1, 2] });
    const ratings = session.from(ratingBatches(rows));
    for (const metric of ['rmse', 'mae'] as const) {
      const text = `implicit data have no ${metric.toUpperCase()}; set metric: 'ndcg@20'`;
      expect(() => new CrossValidator({ estimator: implicit, grid, metric })).toThrow(text);
      expect(() => new TrainValidationSplit({ estimator: implicit, grid, metric })).toThrow(text);
    }
    const { best, results, model } = await new CrossValidator({
      estimator: implicit,
      grid,
      metric: 'ndcg@20',
      numFolds: 2,
    }).fit(ratings);
    expect(best.value).toBe(Math.max(...results.map(({ value }) => value)));
    const [{ train, test }] = ratings.kFold(2);
    const fold = await implicit(best.params).fit(train);
    const { metrics } = await fold.evaluateRanking(test, { metrics: ['ndcg'], k: 20, exclude: train });
    expect(best.folds[0].value).toBeCloseTo(metrics['ndcg@20'], 10);
    await expect(model.evaluate(ratings)).rejects.toThrow(
      'implicit data have no RMSE; measure rankings by evaluateRanking',
    );
  });

  it('reports fits and combinations, and stops when cancelled', async () => {
    const validator = new CrossValidator({ estimator, grid: paramGrid({ rank: [1, 2] }), numFolds: 2 });
    const events: ProgressEvent[] = [];
    await validator.fit(session.from(ratingBatches(rows)), { onEvent: (event) => void events.push(event) });
    const progress = events.filter(
      (event) => event.type === 'phase-progress' && event.phase === 'cross-validate',
    );
    const fits = (done: number) => ({
      type: 'phase-progress',
      phase: 'cross-validate',
      done,
      total: 4,
      unit: 'fits',
    });
    expect([progress.at(0), progress.at(-1)]).toEqual([fits(1), fits(4)]);
    const notes = events
      .filter((event) => event.type === 'note')
      .map(({ text }) => text.replaceAll(/\d\.\d+/g, 'x'));
    expect(notes).toEqual([
      'rank 1: RMSE x, MAE x (damped means: RMSE x, MAE x)',
      'rank 2: RMSE x, MAE x (damped means: RMSE x, MAE x)',
      expect.stringMatching(/^CPU: 2 threads, /),
    ]);
    expect(events.filter((event) => event.type === 'iteration')).toHaveLength(8);

    const cancel = new AbortController();
    const cancelled = validator.fit(session.from(ratingBatches(rows)), {
      signal: cancel.signal,
      onEvent: (event) => void (event.type === 'phase-progress' && event.done === 1 && cancel.abort()),
    });
    await expect(cancelled).rejects.toBeInstanceOf(CancelledError);
  });

  it('warns once of ratings that look like something else, and of a grid without a better model than means', async () => {
    const warnings = async (ratings: readonly Triple[], regParam: number) => {
      const codes: unknown[] = [];
      const validator = new CrossValidator({ estimator, grid: [{ rank: 2, regParam }], numFolds: 3 });
      await validator.fit(session.from(ratingBatches(ratings)), {
        onEvent: (event) => void (event.type === 'warning' && codes.push(event.code)),
      });
      return codes;
    };
    expect(
      await warnings(
        rows.map((row) => ({ ...row, rating: 1 })),
        0.1,
      ),
    ).toEqual(['equal-ratings']);
    expect(await warnings(rows, 50)).toEqual(['no-better-than-means']);
    expect(await warnings(rows, 0.01)).toEqual([]);
  });

  it('refuses invalid options before it trains', async () => {
    const grid = [{ rank: 2 }];
    expect(() => new CrossValidator({ estimator, grid: [{ rank: 2 }, { rank: 0 }] })).toThrow(
      'rank must be a whole number from 1 to 4,096, got 0',
    );
    expect(() => new CrossValidator({ estimator, grid: [] })).toThrow(
      'the grid of a cross-validator is empty',
    );
    expect(() => new CrossValidator({ estimator, grid, numFolds: 1 })).toThrow(
      'numFolds must be a whole number from 2 to 1,000, got 1',
    );
    expect(() => new CrossValidator({ estimator, grid, metric: 'ndcg' as 'rmse' })).toThrow(
      'metric must be a metric such as ndcg@20, recall@10, mrr or auc, got "ndcg"',
    );
    expect(() => new CrossValidator({ estimator, grid, folds: 3 } as never)).toThrow(
      'unknown option folds of a cross-validator',
    );
    const once = session.from(ratingBatches(rows)[Symbol.iterator]());
    await expect(new CrossValidator({ estimator, grid }).fit(once)).rejects.toBeInstanceOf(UsageError);
    const alone = session.from(
      ratingBatches([0, 1, 2, 3, 4, 5].map((id) => ({ user: id, item: id, rating: 1 }))),
    );
    await expect(new CrossValidator({ estimator, grid, numFolds: 2 }).fit(alone)).rejects.toThrow(
      'fold 1 has no pair whose user and item are in the other folds',
    );
  });
});

describe('a parameter grid', () => {
  it('has every combination, the last parameter changing fastest', () => {
    expect(paramGrid({ rank: [8, 16], biases: [true, false] })).toEqual([
      { rank: 8, biases: true },
      { rank: 8, biases: false },
      { rank: 16, biases: true },
      { rank: 16, biases: false },
    ]);
    expect(() => paramGrid({ rank: [] })).toThrow('the grid has no value for rank');
  });
});
