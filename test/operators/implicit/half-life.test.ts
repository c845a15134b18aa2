/** Weights of implicit ratings that halve with age: the same models as ratings that are weighed by hand. */
import { Field, Float64, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { weightOf } from '../../../engine/numbers/value-index.ts';
import {
  ALS,
  type AlsOptions,
  type Dataset,
  type Model,
  type ProgressEvent,
  TrainValidationSplit,
} from '../../../index.ts';
import { readWeight } from '../../../operators/als/implicit/rating-weight.ts';
import { decayOf } from '../../../operators/ratings/rows/recency.ts';
import { distinctRatings } from '../../support/implicit.ts';
import { ratingBatch, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();
const DAY = 86_400;
const START = 1_600_000_000;

interface Timed extends Triple {
  readonly timestamp: number;
}

/** Ratings with a long tail, over 100 days. */
const rows: readonly Timed[] = distinctRatings(3, 50, 30, 500).map((row, k) => ({
  ...row,
  rating: 1 + (k % 7) ** 3,
  timestamp: START + ((k * 37) % 101) * DAY,
}));
const latest = START + 100 * DAY;

/** The rows with their times as float64, in a unit of so many seconds. */
function timed(given: readonly Timed[], unit = 1): Dataset {
  const plain = ratingBatch(given);
  const length = given.length;
  const times = makeData({
    type: new Float64(),
    length,
    data: Float64Array.from(given, ({ timestamp }) => timestamp / unit),
  });
  const schema = new Schema([...plain.schema.fields, new Field('timestamp', new Float64(), false)]);
  const children = [...plain.data.children, times];
  const data = makeData({ type: new Struct<TypeMap>(schema.fields), length, nullCount: 0, children });
  return session.from([new RecordBatch(schema, data)]);
}

const settings = {
  implicitPrefs: true,
  rank: 4,
  maxIter: 3,
  alpha: 20,
  regParam: 2,
  regExponent: 0.75,
} as const;
const fit = (
  ratings: Dataset,
  options: AlsOptions = {},
  onEvent: (event: ProgressEvent) => void = () => {},
) => new ALS({ ...settings, ...options }).fit(ratings, { onEvent });
const bits = ({ itemFactors, userFactors }: Model) =>
  [itemFactors, userFactors].map(({ data }) => data.children[1].children[0].values as Float32Array);

/** The rows with the weights in place of the ratings. */
const byHand = (weight: ReturnType<typeof readWeight>, halfLife: number, now: number, given = rows) =>
  session.from([
    ratingBatch(
      given.map((row) => ({
        ...row,
        rating: weightOf(weight, row.rating, 1) * decayOf({ halfLife, now }, row.timestamp),
      })),
    ),
  ]);

describe('the warning of a model that ranks no better than popularity', () => {
  // λ is so large that all predictions are 0, which is an order by chance.
  const options = { ...settings, regParam: 1e9 };
  const popular = rows.map((row, k) => ({ ...row, item: k % 3 === 0 ? 1 : row.item }));
  const textOf = (warnings: readonly { readonly code: string; readonly text: string }[]) =>
    warnings.find(({ code }) => code === 'no-better-than-popularity')?.text;
  const texts = async (train: Dataset, test: Dataset, more: AlsOptions = {}) => {
    const model = await new ALS({ ...options, ...more }).fit(train, { validation: test });
    const evaluation = await model.evaluateRanking(test, { exclude: train });
    return [textOf(model.training?.warnings ?? []), textOf(evaluation.warnings)];
  };

  it('names a half-life of a sixteenth of the time, after a split by time', async () => {
    const [train, test] = await timed(popular).timeSplit([0.8, 0.2]);
    // 80 days of ratings.
    for (const text of await texts(train, test)) expect(text).toMatch(/later .* halfLife: '4\.9d'$/);
    for (const text of await texts(train, test, { halfLife: '90d' })) expect(text).not.toContain('halfLife');
  });

  it('names none after a random split, or without times', async () => {
    const [train, test] = timed(popular).randomSplit([0.8, 0.2]);
    const [early, late] = await timed(popular).timeSplit([0.8, 0.2]);
    const pairs = (all: Dataset) => all.select('user', 'item', 'rating') as Dataset;
    for (const found of [await texts(train, test), await texts(pairs(early), pairs(late))])
      for (const text of found) expect(text).toMatch(/Try other values of[^']*$/);
  });
});

describe('a search of half-lives', () => {
  it('measures trials on the latest ratings, and trains the last model with the best half-life', async () => {
    const estimator = (params: AlsOptions) => new ALS({ ...settings, ...params });
    const search = (grid: readonly AlsOptions[]) =>
      new TrainValidationSplit({
        estimator,
        grid: grid.map((params) => ({ ...params })),
        metric: 'ndcg@10',
        validationFraction: 0.2,
      }).fit(timed(rows));
    const { best, trials, model } = await search([{ halfLife: 'none' }, { halfLife: '20d' }]);
    const [train, validation] = await timed(rows).timeSplit([0.8, 0.2]);
    const alone = await new ALS({
      ...settings,
      halfLife: '20d',
      earlyStop: 3,
      earlyStopMetric: 'ndcg@10',
    }).fit(train, { validation });
    const values = alone.training?.iterations.map(({ testMetrics }) => testMetrics?.['ndcg@10'] ?? 0);
    expect(trials[1].value).toBe(Math.max(...(values ?? [])));
    expect(model.metadata.params).toMatchObject({ halfLife: best.params.halfLife });
    // Without a half-life the validation ratings are drawn at random, as ever.
    const [random] = (await search([{ halfLife: 'none' }])).trials;
    expect(random.value).not.toBe(trials[0].value);
  });
});

describe('halfLife', () => {
  it.each(['auto', 'raw', 'binary', 'spark'] as const)(
    'gives the model of ratings that are weighed by hand, %s',
    async (weight) => {
      const [all, model] = [
        await fit(timed(rows), { weight }),
        await fit(timed(rows), { weight, halfLife: '20d' }),
      ];
      // Ages change no constant of the formula: a rating of now weighs what it would without a half-life. The
      // constants are of the first nine binary digits of a rating.
      const [known, own] = [all, model].map(({ metadata }) => readWeight(metadata.ratingWeight));
      expect(own.form).toBe(known.form);
      expect(weightOf(own, 28, 1)).toBeCloseTo(weightOf(known, 28, 1), 6);
      const hand = await fit(byHand(own, 20 * DAY, latest), { weight: 'spark' });
      expect(bits(model)).toEqual(bits(hand));
      expect(bits(model)).not.toEqual(bits(all));
    },
  );

  it('counts ages from the given now, in any unit of the times', async () => {
    const now = new Date((latest + 10 * DAY) * 1000).toISOString();
    const model = await fit(timed(rows), { halfLife: '480h', now });
    const hand = byHand(readWeight(model.metadata.ratingWeight), 20 * DAY, latest + 10 * DAY);
    expect(bits(model)).toEqual(bits(await fit(hand, { weight: 'spark' })));
    expect(bits(model)).toEqual(bits(await fit(timed(rows, 1e-3), { halfLife: '20d', now })));
    expect(model.metadata.params).toMatchObject({ halfLife: '480h', now });
  });

  it('stores the time of the latest rating as now, and prints it in plans', async () => {
    const now = new Date(latest * 1000).toISOString();
    const model = await fit(timed(rows), { halfLife: '20d' });
    expect(model.metadata.params).toMatchObject({ halfLife: '20d', now });
    const plan = await new ALS({ ...settings, halfLife: '20d' }).plan(timed(rows));
    expect(String(plan)).toContain(`20d before ${now}`);
    expect(String(plan)).toContain('select-ratings > weights by age');
  });

  it('is an option of one mechanism with duplicates: the last rating of a pair by time', async () => {
    const again = [
      ...rows,
      ...rows.slice(0, 50).map((row) => ({ ...row, rating: 2, timestamp: latest + DAY })),
    ];
    const options = { halfLife: '20d', onDuplicates: 'last' } as const;
    const model = await fit(timed(again), options);
    const kept = [...rows.slice(50), ...again.slice(-50)];
    const hand = byHand(readWeight(model.metadata.ratingWeight), 20 * DAY, latest + DAY, kept);
    expect(bits(model)).toEqual(bits(await fit(hand, { weight: 'spark' })));
  });

  it('keeps a rating of any age', async () => {
    const old = rows.map((row, k) => (k === 0 ? { ...row, timestamp: 1e8 } : row));
    const warned: string[] = [];
    await fit(
      timed(old),
      { halfLife: '1min' },
      (event) => event.type === 'warning' && warned.push(event.text),
    );
    expect(warned.join()).not.toContain('ratings of 0');
    expect(decayOf({ halfLife: 60, now: latest }, 1e8)).toBeGreaterThan(0);
  });

  it('warns of ratings after now, which count as ratings of now', async () => {
    const now = String(latest - 30 * DAY);
    const events: ProgressEvent[] = [];
    const model = await fit(timed(rows), { halfLife: '20d', now }, (event) => events.push(event));
    const late = rows.filter(({ timestamp }) => timestamp > latest - 30 * DAY).length;
    expect(events).toContainEqual(
      expect.objectContaining({
        code: 'after-now',
        text: expect.stringMatching(`^${late} ratings `) as string,
      }),
    );
    const hand = byHand(readWeight(model.metadata.ratingWeight), 20 * DAY, latest - 30 * DAY);
    expect(bits(model)).toEqual(bits(await fit(hand, { weight: 'spark' })));
  });

  it.each(['30', '0d', '-3d', '30 days', 'd', '1e3d', ''])('refuses the text %j', (halfLife) => {
    expect(() => new ALS({ implicitPrefs: true, halfLife })).toThrow('halfLife must be');
  });

  it('refuses combinations that mean nothing', async () => {
    expect(() => new ALS({ halfLife: '3d' })).toThrow('acts only on implicit data');
    expect(() => new ALS({ implicitPrefs: true, now: '2024-01-01' })).toThrow('now acts only with halfLife');
    expect(() => new ALS({ implicitPrefs: true, halfLife: '3d', now: 'yesterday' })).toThrow(
      'now must be a time such as',
    );
    expect(() => new ALS({ implicitPrefs: true, halfLife: '3d', weight: 'bm25' })).toThrow(
      'weight bm25 cannot be used with halfLife',
    );
    expect(() => new ALS({ implicitPrefs: true, timestampCol: 'at' })).toThrow(
      "timestampCol acts only with halfLife, or with onDuplicates 'last'",
    );
    await expect(fit(session.from([ratingBatch(rows)]), { halfLife: '3d' })).rejects.toThrow(
      'there is no column "timestamp"',
    );
  });

  it('refuses times of no known unit, and rows without a time', async () => {
    await expect(fit(timed(rows, DAY), { halfLife: '3d' })).rejects.toThrow('numbers of no known unit');
    const missing = rows.map((row, k) => (k % 50 === 7 ? { ...row, timestamp: Number.NaN } : row));
    await expect(fit(timed(missing), { halfLife: '3d' })).rejects.toThrow('timestamp is NaN');
    const [skipped, whole] = [
      await fit(timed(missing), { halfLife: '3d', onBadRows: 'skip' }),
      await fit(timed(rows.filter((_, k) => k % 50 !== 7)), { halfLife: '3d' }),
    ];
    expect(skipped.training?.ratings).toBe(whole.training?.ratings);
  });

  it('weighs later ratings of a model by age, too, if they have times', async () => {
    const model = await fit(timed(rows), { halfLife: '20d' });
    const weight = readWeight(model.metadata.ratingWeight);
    const later = rows.slice(0, 40).map((row, k) => ({ ...row, timestamp: latest + k * DAY }));
    const hand = byHand(weight, 20 * DAY, latest + 39 * DAY, later);
    const plain = await fit(byHand(weight, 20 * DAY, latest), { weight: 'spark' });
    expect(bits(plain)).toEqual(bits(model));
    const updated = await model.update(timed(later));
    expect(bits(updated)).toEqual(bits(await plain.update(hand)));
    expect(updated.metadata.params).toMatchObject({
      halfLife: '20d',
      now: new Date((latest + 39 * DAY) * 1000).toISOString(),
    });
    const [folded, handFolded] = [await model.foldIn(timed(later)), await plain.foldIn(hand)];
    expect(bits(folded.model)[1]).toEqual(bits(handFolded.model)[1]);
  });

  it('takes later ratings without times, or before now, as they are', async () => {
    const model = await fit(timed(rows), { halfLife: '20d' });
    const few = rows.slice(0, 40);
    const ofNow = few.map((row) => ({ ...row, timestamp: latest }));
    const { model: folded } = await model.foldIn(session.from([ratingBatch(few)]));
    expect(bits(folded)[1]).toEqual(bits((await model.foldIn(timed(ofNow))).model)[1]);
    const updated = await model.update(session.from([ratingBatch(few)]));
    expect(bits(updated)).toEqual(bits(await model.update(timed(ofNow))));
    // Ratings of a day are as old as the model knows time to be, not of the latest among them.
    const old = few.map((row) => ({ ...row, timestamp: latest - 40 * DAY }));
    expect(bits((await model.foldIn(timed(old))).model)[1]).not.toEqual(bits(folded)[1]);
  });
});
