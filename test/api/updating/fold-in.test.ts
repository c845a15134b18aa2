/**
 * Folds in new users by their ratings. They get the same factors as in training, whose last half-iteration
 * solves users from items.
 */
import { describe, expect, it } from 'vitest';
import type { RatedItem } from '../../../api/serving/fold-in-request.ts';
import { ALS, type AlsOptions, type Dataset, type Model, SGD } from '../../../index.ts';
import { everyNth, isDeep } from '../../support/deep.ts';
import { randomRatings, ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const rows = randomRatings(71, 60, 80, 1500);
const session = await cpuSession();

const dataOf = (ratings: readonly Triple[]): Dataset => session.from(ratingBatches(ratings));
const fit = (options: AlsOptions) =>
  new ALS({ rank: 5, regParam: 0.07, maxIter: 3, seed: 2, solver: 'cholesky', ...options }).fit(dataOf(rows));
const ratedBy = (user: number): RatedItem[] =>
  rows.filter((row) => row.user === user).map(({ item, rating }) => ({ item, rating }));
const idsOf = (model: Model) => Array.from(model.userFactors.getChildAt(0)?.toArray() as Int32Array);
const valuesOf = (model: Model) => model.userFactors.data.children[1].children[0].values as Float32Array;

const kinds: Readonly<Record<string, AlsOptions>> = {
  'without biases': { biases: false },
  'with biases': { biases: true, biasDamping: 0, regOffset: 0 },
  'with damped biases, an offset and an exponent': {
    biases: true,
    biasDamping: [3, 5],
    regOffset: 2,
    regExponent: 0.8,
  },
  'with an offset alone': { biases: false, regOffset: 1.5 },
  nonnegative: { biases: false, nonnegative: true, solver: 'auto' },
  "implicit, Spark's weights": { implicitPrefs: true, biases: false, alpha: 3 },
  'implicit, the weights of iALS': {
    implicitPrefs: true,
    biases: false,
    alpha: 2,
    unobservedWeight: 0.3,
    regExponent: 0.7,
  },
  'implicit, with weights of bm25': { implicitPrefs: true, biases: false, alpha: 2, weight: 'bm25' },
  'implicit, with ratings as weights': { implicitPrefs: true, biases: false, alpha: 2, weight: 'raw' },
};

it.each(isDeep ? (['auto', 'log', 'binary', 'raw', 'bm25'] as const) : (['auto', 'bm25'] as const))(
  'a model of clicks, weights of %s, folds its own users in as it has them',
  async (weight) => {
    const clicks = dataOf(rows.map((row) => ({ ...row, rating: 1 })));
    const model = await new ALS({
      implicitPrefs: true,
      weight,
      alpha: 5,
      rank: 5,
      regParam: 0.07,
      maxIter: 3,
      seed: 2,
      solver: 'cholesky',
    }).fit(clicks);
    const { model: folded } = await model.foldIn(clicks);
    const [own, given] = [valuesOf(folded), valuesOf(model)];
    for (let k = 0; k < given.length; k++) expect(own[k]).toBeCloseTo(given[k], 4);
  },
);

describe.each(everyNth(Object.entries(kinds), 2))('a model %s', async (name, options) => {
  const model = await fit(options);

  it('folds its own users in as it has them', async () => {
    const { model: folded, users, withoutItems, ratings, coldRatings } = await model.foldIn(dataOf(rows));
    expect([users, withoutItems, ratings, coldRatings]).toEqual([model.userCount, 0, rows.length, 0]);
    expect(idsOf(folded)).toEqual(idsOf(model));
    const [own, given] = [valuesOf(folded), valuesOf(model)];
    for (let k = 0; k < given.length; k++) expect(own[k]).toBeCloseTo(given[k], 4);
    expect(folded.itemFactors.data.children[1].children[0].values).toBe(
      model.itemFactors.data.children[1].children[0].values,
    );
  });

  it('recommends to a user of a request as to one who was folded in', async () => {
    const user = rows[3].user;
    const { model: folded } = await model.foldIn(dataOf(rows.filter((row) => row.user === user)));
    const wanted = await folded.recommend(user, 5, { deny: ratedBy(user).map(({ item }) => item) });
    const given = await model.recommend({ ratings: ratedBy(user) }, 5);
    expect(given).toEqual({ user: null, known: true, items: wanted.items, short: false, unknownItems: 0 });
  });

  it('explains a score by the ratings that it comes from', async () => {
    if (options.nonnegative) return;
    const ratings = ratedBy(rows[3].user);
    const [first] = (await model.recommend({ ratings }, 1)).items;
    const { score, base, contributions, known, unknownItems } = await model.explain(
      [...ratings, { item: 77_777, rating: 3 }],
      first.item,
    );
    expect([known, unknownItems]).toEqual([true, 1]);
    expect(score).toBeCloseTo(first.score, 4);
    expect(contributions.reduce((sum, { share }) => sum + share, base)).toBeCloseTo(score, 10);
    expect(contributions.map(({ item }) => item).toSorted()).toEqual(
      ratings.map(({ item }) => item).toSorted(),
    );
    const shares = contributions.map(({ share }) => share);
    expect(shares).toEqual(shares.toSorted((left, right) => right - left));
    expect(
      contributions
        .map(({ item, rating }) => ({ item, rating }))
        .toSorted((left, right) => Number(left.item) - Number(right.item)),
    ).toEqual(ratings.toSorted((left, right) => Number(left.item) - Number(right.item)));
    // The same from among the ratings of all users.
    const { modelScore, ...found } = await model.explain(
      { user: rows[3].user, ratings: dataOf(rows) },
      first.item,
    );
    expect(found).toEqual(await model.explain(ratings, first.item));
    expect(modelScore).toBeCloseTo(
      (await model.recommend(rows[3].user, 1, { allow: [first.item] })).items[0].score,
      4,
    );
    for (const user of [5001, 'x'])
      await expect(model.explain({ user, ratings: dataOf(rows) }, first.item)).rejects.toThrow(
        `there are no ratings of user ${user}`,
      );
    if (name !== 'without biases') return;
    // The contributions are linear in the ratings: if one rating grows by 1, only its own contribution
    // changes, by its contribution divided by the rating.
    const [{ item, share }] = contributions;
    const rating = ratings.find((one) => one.item === item)?.rating as number;
    const changed = await model.explain(
      ratings.map((one) => (one.item === item ? { item, rating: rating + 1 } : one)),
      first.item,
    );
    expect(changed.score - score).toBeCloseTo(share / rating, 8);
  });
});

describe('ratings that no finite factors fit', () => {
  it.each(['with biases', "implicit, Spark's weights"])('are refused by a model %s', async (name) => {
    const model = await fit({ ...kinds[name], weight: name === 'with biases' ? undefined : 'spark' });
    const ratings = rows.slice(0, 2).map(({ item }) => ({ item, rating: 3.4e38 }));
    const problem = 'the equations of these ratings have no finite solution. Give ratings on the scale';
    await expect(model.recommend({ ratings }, 3)).rejects.toThrow(problem);
    // Shares are linear in ratings, so that explicit ratings of any size have finite ones.
    if (name === 'with biases') return;
    await expect(model.explain(ratings, rows[0].item)).rejects.toThrow(problem);
  });
});

describe('fold-in', async () => {
  const [biased, plain] = [await fit({ biases: true }), await fit({ biases: false })];

  it('counts what the model does not know, and gives no factors that are not numbers', async () => {
    const model = biased;
    const [known, unknown] = [rows[0].item, 99_999];
    const { model: folded, ...counts } = await model.foldIn(
      dataOf([
        { user: 5001, item: known, rating: 4 },
        { user: 5001, item: unknown, rating: 1 },
        { user: 5002, item: unknown, rating: 5 },
        { user: 5003, item: rows[1].item, rating: 2 },
      ]),
    );
    expect(counts).toEqual({ users: 2, withoutItems: 1, ratings: 2, coldRatings: 2 });
    expect(idsOf(folded)).toEqual([5001, 5003]);
    expect(valuesOf(folded).every(Number.isFinite)).toBe(true);
    const empty = await model.foldIn(dataOf([{ user: 5002, item: unknown, rating: 5 }]));
    expect([empty.users, empty.withoutItems, empty.model.userCount]).toEqual([0, 1, 0]);
    expect(await model.recommend({ ratings: [{ item: unknown, rating: 5 }] }, 3)).toEqual({
      user: null,
      known: false,
      items: [],
      short: true,
      unknownItems: 1,
    });
    expect(await model.recommend({ ratings: [] }, 2, { unknownUsers: 'popular' })).toMatchObject({
      known: false,
      fallback: 'popular',
      items: { length: 2 },
    });
    await expect(model.recommend({ ratings: [] }, 2, { unknownUsers: 'error' })).rejects.toThrow(
      'the model knows no item that the user rated',
    );
    expect(await model.explain([{ item: unknown, rating: 5 }], known)).toEqual({
      item: known,
      known: false,
      score: Number.NaN,
      base: 0,
      contributions: [],
      unknownItems: 1,
    });
    expect((await model.explain([{ item: known, rating: 5 }], unknown)).known).toBe(false);
  });

  it('goes by the λ of the training, or the one given', async () => {
    const model = plain;
    const users = dataOf(rows);
    const [own, same, other] = await Promise.all(
      [{}, { regParam: 0.07 }, { regParam: 5 }].map(async (options) =>
        valuesOf((await model.foldIn(users, options)).model),
      ),
    );
    expect(same).toEqual(own);
    expect(Math.hypot(...other)).toBeLessThan(Math.hypot(...own) / 2);
    const sgd = await new SGD({ rank: 3, maxIter: 2, regParamUsers: 0.1, regParamItems: 0.2 }).fit(users);
    expect((await sgd.foldIn(users)).users).toBe(sgd.userCount);
  });

  it.each(isDeep ? [true, false] : [true])(
    'folds users of a converged model by SGD in as it has them, for ratings of any deviation: biases %s',
    async (biases) => {
      const scaled = dataOf(rows.map((row) => ({ ...row, rating: 30 * row.rating })));
      // After SGD, factors still differ from their limit by about γ.
      const model = await new SGD({
        rank: 3,
        maxIter: 1000,
        regParam: 3,
        regOffset: 1,
        biases,
        ...(biases && { biasDamping: 2 }),
        rate: 'constant',
        learningRate: 0.005,
        schedule: 'wavefront',
        seed: 5,
      }).fit(scaled);
      const { model: folded } = await model.foldIn(scaled);
      const parts = [folded, model].map((one) => {
        const columns = Array.from({ length: biases ? 4 : 3 }, (_, of) =>
          Array.from(valuesOf(one)).filter((_, at) => at % (biases ? 5 : 3) === of),
        );
        const mean = columns.at(-1)?.reduce((sum, value) => sum + value / one.userCount, 0) ?? 0;
        return biases
          ? [columns.slice(0, 3).flat(), columns[3].map((value) => value - mean)]
          : [columns.flat()];
      });
      parts[0].forEach((own, of) => {
        const given = parts[1][of];
        expect(Math.hypot(...given)).toBeGreaterThan(10);
        expect(Math.hypot(...own.map((value, at) => value - given[at])) / Math.hypot(...given)).toBeLessThan(
          0.03,
        );
      });
      const { user } = rows[0];
      const rated = rows
        .filter((row) => row.user === user)
        .map(({ item, rating }) => ({ item, rating: 30 * rating }));
      const [{ items }, wanted] = await Promise.all([
        model.recommend({ ratings: rated }, 5),
        folded.recommend(user, 5, { deny: rated.map(({ item }) => item) }),
      ]);
      items.forEach(({ score }, k) => expect(score / wanted.items[k].score).toBeCloseTo(1, 4));
    },
  );

  it('refuses ratings that are no numbers, and lists that are none', async () => {
    const model = plain;
    await expect(
      model.recommend({ ratings: [{ item: rows[0].item, rating: Number.NaN }] }, 3),
    ).rejects.toThrow(/the rating of item \d+ must be a finite number, got NaN/);
    await expect(model.recommend({ ratings: [{ item: rows[0].item }] }, 3)).rejects.toThrow(
      'must be a finite number, got undefined',
    );
    await expect(model.recommend({ ratings: 5 as never }, 3)).rejects.toThrow('ratings must be a list');
    await expect(model.foldIn(dataOf(rows), { regParam: -1 })).rejects.toThrow(
      'regParam (λ) must be a number of 0 or more, got -1',
    );
    const clicks = await fit({ implicitPrefs: true, biases: false });
    expect((await clicks.recommend({ ratings: [{ item: rows[0].item }] }, 3)).items.length).toBe(3);
  });
});
