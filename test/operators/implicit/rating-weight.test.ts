/** Weights of implicit ratings: their forms, their scale, and α by the density of the ratings. */
import { describe, expect, it } from 'vitest';
import { type ValueWeight, weightOf } from '../../../engine/numbers/value-index.ts';
import { ALS, type AlsOptions, type Model } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { readWeight } from '../../../operators/als/implicit/rating-weight.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { distinctRatings, factorsById } from '../../support/implicit.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

/** Counts with a long tail. */
const rows: readonly Triple[] = distinctRatings(3, 50, 30, 500).map((row, k) => ({
  ...row,
  rating: 1 + (k % 7) ** 3,
}));
const fit = (ratings: readonly Triple[], options: AlsOptions = {}): Promise<Model> =>
  new ALS({ implicitPrefs: true, rank: 4, maxIter: 3, solver: 'cholesky', ...options }).fit(
    session.from(ratingBatches(ratings)),
  );
const learned = async (weight: AlsOptions['weight']) =>
  readWeight((await fit(rows, { weight, maxIter: 1 })).metadata.ratingWeight);
const countsOf = (ratings: readonly Triple[]) => {
  const counts = new Map<number, number>();
  for (const { item } of ratings) counts.set(item as number, (counts.get(item as number) ?? 0) + 1);
  return counts;
};

describe('the weight of a rating', () => {
  it.each(['raw', 'binary', 'log', 'bm25'] as const)(
    'has a mean of 1 over the training set, %s',
    async (form) => {
      const [weight, counts] = [await learned(form), countsOf(rows)];
      expect(weight.form).toBe(form);
      const sum = rows.reduce(
        (total, { rating, item }) => total + weightOf(weight, rating, counts.get(item as number)!),
        0,
      );
      expect(sum / rows.length).toBeCloseTo(1, 10);
    },
  );

  it('is the rating itself in the form of Spark, and 1 where it is binary', async () => {
    expect(rows.slice(0, 20).map(({ rating }) => rating)).toEqual(
      rows
        .slice(0, 20)
        .map(({ rating }) => weightOf({ form: 'spark', unit: 9, scale: 9, meanCount: 9 }, rating, 3)),
    );
    expect(weightOf(await learned('binary'), 343, 1)).toBe(1);
  });

  it('follows its formula and keeps the sign of a dislike', () => {
    const of = (form: ValueWeight['form']) => ({ form, unit: 2, scale: 3, meanCount: 10 });
    expect(weightOf(of('log'), 6, 1)).toBeCloseTo(3 * (1 + Math.log(4)), 12);
    expect(weightOf(of('log'), -6, 1)).toBeCloseTo(-3 * (1 + Math.log(4)), 12);
    // x = 3, and an item with twice the mean count: k1 (1 - b + 2 b) = 1.2 * 1.75 = 2.1.
    expect(weightOf(of('bm25'), 6, 20)).toBeCloseTo((3 * 3 * 2.2) / (2.1 + 3), 12);
    expect(weightOf(of('raw'), -6, 1)).toBe(-18);
  });

  it.each(['log', 'bm25'] as const)('does not depend on the unit of the ratings, %s', async (weight) => {
    const [seconds, hours] = [
      await fit(
        rows.map((row) => ({ ...row, rating: row.rating * 3600 })),
        { weight },
      ),
      await fit(rows, { weight }),
    ];
    for (const [id, row] of factorsById(hours.userFactors))
      row.forEach((value, k) => expect(factorsById(seconds.userFactors).get(id)![k]).toBeCloseTo(value, 4));
  });

  it('is log by default, which is 1 where all ratings are equal', async () => {
    const equal = rows.map((row) => ({ ...row, rating: 5 }));
    const bits = async (options: AlsOptions, ratings = rows) =>
      (await fit(ratings, options)).userFactors.data.children[1].children[0].values;
    expect(await bits({})).toEqual(await bits({ weight: 'log' }));
    expect(await bits({})).not.toEqual(await bits({ weight: 'binary' }));
    expect(await bits({}, equal)).toEqual(await bits({ weight: 'binary' }, equal));
  });

  it('refuses constants that no training writes', () => {
    for (const stored of [
      { form: 'tf', unit: 1, scale: 1, meanCount: 1 },
      { form: 'log', unit: 0, scale: 1, meanCount: 1 },
      { form: 'log' },
      'log',
    ]) {
      expect(() => readWeight(stored)).toThrow("the model's weight of ratings is damaged");
    }
    expect(readWeight(undefined).form).toBe('spark');
  });
});

describe('α and λ of implicit data', () => {
  const sized = (options: AlsOptions, ratings = 20_000) =>
    sizedParams(checkAlsParams({ implicitPrefs: true, ...options }), { users: 1000, items: 2000, ratings });

  it('follow from the density of the ratings', () => {
    // m n / Nz = 100, and 100^0.6 = 15.85.
    expect(sized({})).toMatchObject({ alpha: 15.8, regParam: 4.74, regExponent: 0.75, weight: 'log' });
    expect(sized({}, 1000)).toMatchObject({ alpha: 95.6 });
    expect(sized({}, 10)).toMatchObject({ alpha: 100, regParam: 30 });
    expect(sized({}, 2_000_000)).toMatchObject({ alpha: 1, regParam: 0.3 });
  });

  it('are those that are given, λ by a given α, and those of the authors of other forms', () => {
    expect(sized({ alpha: 40 })).toMatchObject({ alpha: 40, regParam: 12 });
    expect(sized({ regParam: 2 })).toMatchObject({ alpha: 15.8, regParam: 2 });
    expect(sized({ unobservedWeight: 0.1 })).toMatchObject({ alpha: 1, regParam: 0.003, regExponent: 1 });
    expect(sized({ weight: 'spark' })).toMatchObject({ alpha: 1, regParam: 0.1, regExponent: 1 });
  });

  it('are numbers in the model and its plan', async () => {
    const model = await fit(rows);
    const [users, items] = [
      new Set(rows.map(({ user }) => user)).size,
      new Set(rows.map(({ item }) => item)).size,
    ];
    const { alpha, regParam } = sizedParams(checkAlsParams({ implicitPrefs: true }), {
      users,
      items,
      ratings: rows.length,
    });
    expect(model.metadata.params).toMatchObject({ alpha, regParam, weight: 'log' });
    expect(model.training!.plan.params).toMatchObject({ alpha, regParam });
  });

  it('let a plan that was made from the ratings be run', async () => {
    const als = new ALS({ implicitPrefs: true, rank: 4, maxIter: 2 });
    const ratings = session.from(ratingBatches(rows), undefined, { replayable: true });
    const model = await als.fit(ratings, { plan: await als.plan(ratings) });
    expect(model.metadata.params).toMatchObject({ weight: 'log' });
  });

  it('are those of the ratings as read in the plan of a trained model, which the same ratings run again', async () => {
    const als = new ALS({ implicitPrefs: true, rank: 4, maxIter: 2 });
    const repeated = [...rows, ...rows.slice(0, 200), { ...rows[0], rating: 0 }];
    const model = await als.fit(session.from(ratingBatches(repeated)));
    const again = await als.fit(session.from(ratingBatches(repeated)), { plan: model.training?.plan });
    expect(again.metadata.params).toEqual(model.metadata.params);
    const fewer = als.fit(session.from(ratingBatches(rows)), { plan: model.training?.plan });
    await expect(fewer).rejects.toThrow('the plan does not fit');
  });
});
