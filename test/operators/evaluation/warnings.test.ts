/** Warnings about ratings that look like something else, and about models that are no better than means. */
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type ProgressEvent, SGD, type TrainingReport } from '../../../index.ts';
import { compareToMeans } from '../../../operators/evaluation/model-warnings.ts';
import { plantedRatings } from '../../support/planted.ts';
import { batchOf, randomRatings, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const dataset = (rows: readonly Triple[]) => session.from(ratingBatches(rows));

/** The report of a short training, and its warnings as events. */
async function trained(
  train: readonly Triple[],
  validation?: readonly Triple[],
  options: AlsOptions = {},
): Promise<{ training: TrainingReport; events: ProgressEvent[] }> {
  const events: ProgressEvent[] = [];
  const model = await new ALS({ rank: 3, maxIter: 3, ...options }).fit(dataset(train), {
    ...(validation ? { validation: dataset(validation) } : {}),
    onEvent: (event) => void (event.type === 'warning' && events.push(event)),
  });
  return { training: model.training as TrainingReport, events };
}

const rows = randomRatings(8, 60, 50, 1500);
it('a rank above the number of users or items is a warning, also of the plan', async () => {
  const items = new Set(rows.map(({ item }) => item)).size;
  for (const trainer of [
    new ALS({ rank: items + 1, maxIter: 1 }),
    new SGD({ rank: items + 1, maxIter: 1 }),
  ]) {
    const { training } = await trainer.fit(dataset(rows));
    const text = `rank ${items + 1} is above the number of items, ${items}, which is the largest rank that the ratings can have: more factors take time and memory, and add nothing. Lower the rank to ${items} or less`;
    expect(training?.warnings).toEqual([{ code: 'rank-above-size', text }]);
    expect((await trainer.plan(dataset(rows))).plan.reasons).toContain(`warning: ${text}`);
  }
  expect((await trained(rows, undefined, { rank: items })).training.warnings).toEqual([]);
});

const heavy = (row: Triple, i: number) => ({ ...row, rating: i % 500 === 7 ? 9000 + i : 1 + (i % 4) });

describe('ratings', () => {
  it.each<readonly [string, readonly Triple[], string, RegExp]>([
    [
      'that are all equal',
      rows.map((row) => ({ ...row, rating: 1 })),
      'equal-ratings',
      /all [\d,]+ ratings are 1: .*implicit feedback, which ALS takes with implicitPrefs: true/,
    ],
    [
      'that look like counts',
      rows.map(heavy),
      'counts',
      /look like counts: up to 9,\d{3}, with a mean of .*implicitPrefs: true.*log\(1 \+ r\)/,
    ],
    [
      'that look like amounts',
      rows.map((row, i) => ({ ...row, rating: heavy(row, i).rating + 0.5 })),
      'counts',
      /look like amounts/,
    ],
    [
      'that look like times',
      rows.map((row, i) => ({ ...row, rating: 1.1e9 + 1000 * i })),
      'times',
      /1,100,000,000 to .* look like times\. Check ratingCol/,
    ],
    [
      'of users with one each',
      rows.map((row, i) => ({ ...row, user: i })),
      'single-ratings',
      /all [\d,]+ users have one rating each.*userCol names users, not sessions/,
    ],
    [
      'of which most users have one',
      rows.map((row, i) => ({ ...row, user: i % 3 === 0 ? row.user : 1000 + i })),
      'single-ratings',
      /\d+ of [\d,]+ users have one rating each/,
    ],
    [
      'of items with one each',
      rows.map((row, i) => ({ ...row, item: i })),
      'single-ratings',
      /all [\d,]+ items have one rating each.*itemCol names items/,
    ],
    [
      'of one user',
      rows.map((row, i) => ({ ...row, user: 1, item: i % 20 })),
      'one-row',
      /there is one user: factors have nothing to compare\. Check userCol/,
    ],
    [
      'that repeat their pairs',
      [...rows, ...rows, ...rows],
      'repeated-pairs',
      /ratings repeat an earlier .*onDuplicates \(sum, mean or last\)/,
    ],
  ])('%s are warned of, in the report and as an event', async (_, train, code, text) => {
    const { training, events } = await trained(train);
    const found = training.warnings.find((warning) => warning.code === code);
    expect(found?.text).toMatch(text);
    expect(events).toContainEqual({ type: 'warning', ...found });
    expect(events).toHaveLength(training.warnings.length);
  });

  it('on a scale are warned of by nothing: stars, points to 100, huge numbers, a few users with one rating', async () => {
    const random = testRandom(4);
    for (const scale of [
      (row: Triple) => row.rating,
      (row: Triple) => 1e30 * row.rating,
      (row: Triple) => Math.round(20 * row.rating),
      () => (random() < 0.9 ? 0 : Math.round(100 * random())),
    ]) {
      const few = [...rows, { user: 90_001, item: rows[0].item, rating: 3 }];
      expect((await trained(few.map((row) => ({ ...row, rating: scale(row) })))).training.warnings).toEqual(
        [],
      );
    }
  });
});

describe('bad rows and repeated pairs', () => {
  it.each([
    ['ALS', ALS],
    ['SGD', SGD],
  ] as const)('are counted by %s, those of the validation set too', async (_, Trainer) => {
    const bad = batchOf({
      user: { type: 'int32', values: [1, null, 2, 1] },
      item: { type: 'int32', values: [122, 1, 2, 100] },
      rating: { type: 'float32', values: [3, 1, Number.NaN, 4] },
    });
    const ratings = session.from([...ratingBatches(rows), bad]);
    const model = await new Trainer({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(ratings, {
      validation: session.from([bad]),
    });
    expect(model.training).toMatchObject({ badRows: 4, ratings: rows.length + 2 });
    expect(await model.evaluate(session.from([bad]), { onBadRows: 'skip' })).toMatchObject({
      pairs: 2,
      badRows: 2,
    });
  });
});

describe('a model that is no better than damped means', () => {
  const planted = plantedRatings(3, 200, 150, 3000);
  const [train, test] = [planted.slice(600), planted.slice(0, 600)];
  const verdictOf = async (options: AlsOptions) =>
    (await trained(train, test, options)).training.warnings.find(
      ({ code }) => code === 'no-better-than-means',
    )?.text;

  it('is said to fit the training ratings and not others, with parameters to try', async () => {
    expect(await verdictOf({ rank: 40, regParam: 0.001, maxIter: 5, biases: false })).toMatch(
      /test RMSE, .*fits the training ratings .*biases: true, regParam: 0\.002, rank: 20 or earlyStop: 2$/,
    );
  });

  it('is said not to have fitted them yet', async () => {
    expect(await verdictOf({ rank: 3, regParam: 5, maxIter: 1, biases: true })).toMatch(
      /not yet fitted the training ratings .*regOffset: 5, regParam: 2\.5 or maxIter: 2$/,
    );
  });

  it('gets advice in the parameters that it has', () => {
    const [baselines, params] = [
      { mean: { rmse: 1, mae: 1 }, dampedMeans: { rmse: 0.9, mae: 0.8 } },
      {
        rank: 2,
        regParam: 0,
        biases: true,
        maxIter: 10,
        earlyStop: 2,
        regOffset: 7,
        biasDamping: [3, 5] as const,
      },
    ];
    expect(compareToMeans({ params, trainRmse: 0.5, testRmse: 0.95, baselines })?.text).toMatch(
      /no better than damped means of items and users, 0\.9000: it fits .* Try regOffset: 14 or regParam: 0\.1$/,
    );
    expect(compareToMeans({ params, trainRmse: 0.95, testRmse: 1.5, baselines })?.text).toMatch(
      /no better than the mean rating, 1\.0000: it has not .* Try regOffset: 3\.5$/,
    );
    const over = (more: object) =>
      compareToMeans({
        params: { ...params, earlyStop: undefined, ...more },
        trainRmse: 0.5,
        testRmse: 0.95,
        baselines,
      })?.text;
    expect(over({ regOffset: 0 })).toMatch(/Try regOffset: 10, regParam: 0\.1 or earlyStop: 2$/);
    expect(over({ biasDamping: [3, 400] })).toMatch(/Try biasDamping: 5, regOffset: 14,/);
    expect(over({ biases: false, biasDamping: 0, regOffset: 0 })).toMatch(
      /Try biases: true, regParam: 0\.1 or earlyStop: 2$/,
    );
    expect(over({ regParamUsers: 0.2, regParamItems: 0.3 })).toMatch(
      /Try regOffset: 14, regParamUsers: 0\.4, regParamItems: 0\.6 or/,
    );
    expect(compareToMeans({ testRmse: 0.9, baselines, biases: true })?.text).toMatch(
      /Train it with other parameters: more regularization or a smaller rank$/,
    );
    expect(compareToMeans({ testRmse: 0.9, baselines, biases: false })?.text).toMatch(
      /Train it with other parameters: biases, more regularization or a smaller rank$/,
    );
    expect(compareToMeans({ testRmse: 0.8999, baselines, biases: true })).toBeUndefined();
  });

  it('is not one that is better', async () => {
    expect(await verdictOf({ rank: 4, regParam: 0.15, maxIter: 10, biases: true })).toBeUndefined();
  });
});
