/** Warnings of runs that end noticeably worse, on the validation set, than after their best iteration. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, SGD, TrainValidationSplit, type TrainingReport } from '../../../index.ts';
import { pastBestWarnings } from '../../../operators/evaluation/model-warnings.ts';
import type { TrainingIteration } from '../../../operators/training/training.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const course = (errors: readonly (number | undefined)[]): TrainingIteration[] =>
  errors.map((testRmse, at) => ({ iteration: at + 1, seconds: 1, loss: 1, testRmse }));
const warned = (
  errors: readonly (number | undefined)[],
  more: Partial<Parameters<typeof pastBestWarnings>[0]> = {},
) =>
  pastBestWarnings({
    iterations: course(errors),
    bestIteration: errors.length,
    called: 'iteration',
    pairs: 1e6,
    ...more,
  }).map(({ text }) => text);

describe('a course of test errors', () => {
  it('that ends above its best is warned of, with the early stop that keeps it', () => {
    expect(warned([1.3, 1.2, 1.21, 1.236])).toEqual([
      "the best test RMSE, 1.2000, was after iteration 2, and the model's, 1.2360, is 3.0 % above it: later iterations fit the training ratings more and others less. Use earlyStop: 2, which keeps the best",
    ]);
    expect(warned([1.3, 1.2, 1.236], { called: 'epoch' })[0]).toContain('was after epoch 2');
  });

  it('is given an early stop that passes over what is worse before the best', () => {
    expect(warned([1.3, 1.31, 1.32, 1.33, 1.2, 1.3])[0]).toContain('Use earlyStop: 4,');
    expect(warned([Number.NaN, Number.NaN, 1.2, 1.19, 1.3])[0]).toContain('Use earlyStop: 2,');
  });

  it('that ends with no finite number is warned of', () => {
    for (const last of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(warned([1.2, last])[0]).toContain(`, ${last}, is no finite number beside it`);
  });

  it.each<
    readonly [string, readonly (number | undefined)[], Partial<Parameters<typeof pastBestWarnings>[0]>]
  >([
    ['falls', [1.3, 1.2, 1.1], {}],
    ['ends 0.4 % above its best', [1.2, 1.2048], {}],
    ['is of few pairs, by whose chance it may rise', [1.2, 1.236], { pairs: 200 }],
    ['is kept at its best', [1.3, 1.2, 1.3], { bestIteration: 2 }],
    ['has no error', [undefined, undefined], {}],
    ['has no error after an iteration', [1.1, undefined, 1.2], {}],
    ['is of one iteration', [1.1], {}],
    ['is near 0, where float32 moves it', [1e-6, 2e-6], { meanRmse: 1 }],
    ['is never a number', [Number.NaN, Number.NaN], {}],
  ])('that %s is not', (_, errors, more) => expect(warned(errors, more)).toEqual([]));

  it('of a ranking is warned of where it falls, with its metric', () => {
    const iterations = [0.1, 0.2, 0.15].map((value, at) => ({
      iteration: at + 1,
      seconds: 1,
      loss: 1,
      testMetrics: { 'ndcg@10': value },
    }));
    const run = { iterations, bestIteration: 3, called: 'iteration', pairs: 10_000 } as const;
    expect(pastBestWarnings(run)).toEqual([
      {
        code: 'past-best',
        text: expect.stringMatching(
          /best test ndcg@10, 0\.2000, was after iteration 2, .*is 25\.0 % below it.*earlyStop: 2 and earlyStopMetric: 'ndcg@10', which/,
        ),
      },
    ]);
    expect(pastBestWarnings({ ...run, pairs: 100 })).toEqual([]);
    expect(pastBestWarnings({ ...run, bestIteration: 2 })).toEqual([]);
  });
});

describe('movietweetings-100k at rank 64', () => {
  const ratings = session.read.parquet(
    join(import.meta.dirname, '../../../examples/data/movietweetings-100k/ratings.parquet'),
  );
  const [train, test] = ratings.randomSplit([0.9, 0.1], { seed: 1 });

  const report = async (estimator: ALS | SGD): Promise<TrainingReport> =>
    (await estimator.fit(train, { validation: test })).training as TrainingReport;
  const found = ({ warnings }: TrainingReport) =>
    warnings.filter(({ code }) => code === 'past-best').map(({ text }) => text);

  it('is warned of where ALS fits it too closely, until early stop keeps the best', async () => {
    const make = (more: AlsOptions) => new ALS({ rank: 64, biases: false, maxIter: 4, ...more });
    const text = /was after iteration 1,.* is \d+\.\d % above it.* Use earlyStop: 2/;
    const over = await report(make({}));
    expect(found(over)).toEqual([expect.stringMatching(text)]);
    const stopped = await report(make({ earlyStop: 2 }));
    expect(found(stopped)).toEqual([]);
    const errorOf = ({ iterations, bestIteration }: TrainingReport) =>
      iterations.find(({ iteration }) => iteration === bestIteration)?.testRmse;
    expect(found(over)[0]).toContain(`RMSE, ${errorOf(stopped)?.toFixed(4)}, was after`);
  });

  it('is not by default', async () => {
    expect(found(await report(new ALS({ rank: 64 })))).toEqual([]);
  });

  it('is told of by a model that was saved and by a search', async () => {
    const events: unknown[] = [];
    const make = () => new ALS({ rank: 64, biases: false, maxIter: 3 });
    const { model } = {
      model: await make().fit(train, { validation: test, onEvent: (event) => void events.push(event) }),
    };
    expect(events).toContainEqual({
      type: 'warning',
      code: 'past-best',
      text: expect.stringContaining('after iteration 1,'),
    });
    expect(model.metadata.warnings).toContainEqual({
      code: 'past-best',
      text: expect.stringContaining('after iteration 1,'),
    });
    const searched: unknown[] = [];
    const { best } = await new TrainValidationSplit({ estimator: make, grid: [{}] }).fit(train, {
      validation: test,
      onEvent: (event) => void searched.push(event),
    });
    expect(best.warnings).toEqual([
      { code: 'past-best', text: expect.stringContaining('after iteration 1,') },
    ]);
    expect(searched).toContainEqual({
      type: 'warning',
      code: 'past-best',
      text: expect.stringMatching(/^the best trial, 1: the best test RMSE/),
    });
  });
});
