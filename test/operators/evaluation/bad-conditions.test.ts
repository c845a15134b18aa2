/** Ratings that hardly make a model: the report has numbers or nothing, never NaN, and says what is wrong. */
import { Float32, Int32, Field, Schema } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { ALS, type Dataset, SGD, type TrainingReport } from '../../../index.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const schema = new Schema([
  new Field('user', new Int32(), false),
  new Field('item', new Int32(), false),
  new Field('rating', new Float32(), false),
]);
const dataset = (rows: readonly Triple[]): Dataset => session.from(ratingBatches(rows), schema);
const grid = (users: number, items: number, rating: (user: number, item: number) => number) =>
  Array.from({ length: users * items }, (_, i): Triple => ({
    user: i % users,
    item: Math.floor(i / users),
    rating: rating(i % users, Math.floor(i / users)),
  }));

const ordinary = grid(7, 6, (user, item) => 1 + ((user + item) % 5));
const trainers = [
  ['ALS with biases', () => new ALS({ rank: 2, maxIter: 2, biases: true })],
  ['SGD', () => new SGD({ rank: 2, maxIter: 2, biases: false })],
] as const;

describe.each(trainers)('%s', (_, trainer) => {
  const report = async (train: readonly Triple[], test: readonly Triple[]): Promise<TrainingReport> => {
    const model = await trainer().fit(dataset(train), { validation: dataset(test) });
    if (test.length > 0) expect(await model.evaluate(dataset(test))).toMatchObject({ pairs: test.length });
    return model.training as TrainingReport;
  };
  const codes = ({ warnings }: TrainingReport) =>
    warnings.map(({ code }) => code).filter((code) => code !== 'no-better-than-means');
  const finite = ({ iterations, baselines }: TrainingReport) => {
    const numbers = [
      ...iterations.flatMap(({ loss, trainRmse, testRmse, testMae }) => [loss, trainRmse, testRmse, testMae]),
      ...Object.values(baselines ?? {}).flatMap(({ rmse, mae }) => [rmse, mae]),
    ];
    expect(numbers.filter((value) => value !== undefined && !Number.isFinite(value))).toEqual([]);
  };

  it.each<readonly [string, readonly Triple[], readonly string[]]>([
    ['equal ratings', grid(7, 6, () => 0.1), ['equal-ratings']],
    ['ratings of 0', grid(7, 6, () => 0), ['equal-ratings']],
    ['one user', grid(1, 6, (_user, item) => item), ['one-row']],
    ['one item', grid(7, 1, (user) => user), ['one-row']],
    ['one rating', grid(1, 1, () => 4), ['one-rating']],
  ])('trains on %s, with a warning', async (_name, rows, expected) => {
    const training = await report(rows, rows);
    expect(codes(training)).toEqual(expected);
    expect(training).toMatchObject({ testPairs: rows.length, coldPairs: 0 });
    if (expected[0] === 'equal-ratings' || expected[0] === 'one-rating')
      expect(training.baselines).toEqual({ mean: { rmse: 0, mae: 0 }, dampedMeans: { rmse: 0, mae: 0 } });
    finite(training);
  });

  it.each<readonly [string, readonly Triple[], RegExp]>([
    ['empty', [], /^the validation set has no ratings; there is no test error$/],
    [
      'all cold',
      [
        { user: 900, item: 1, rating: 3 },
        { user: 1, item: 900, rating: 3 },
      ],
      /^the model knows none of the validation set's 2 pairs: .*there is no test error$/,
    ],
  ])('has no test error where the test set is %s, and says so', async (_name, test, text) => {
    const training = await report(ordinary, test);
    expect(training).toMatchObject({
      testPairs: test.length,
      coldPairs: test.length,
      warnings: [{ code: 'cold-test', text: expect.stringMatching(text) }],
    });
    expect(training.baselines).toBeUndefined();
    expect(training.iterations.map(({ testRmse }) => testRmse)).toEqual([undefined, undefined]);
    finite(training);
  });
});
