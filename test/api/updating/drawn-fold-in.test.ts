/** Users who are solved from ratings are drawn to what their attributes predict, as in float64. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keysOfIds } from '../../../engine/keys/find-id.ts';
import type { GivenUser, RatedItem } from '../../../api/serving/fold-in-request.ts';
import { ALS, type AlsOptions, Model, UsageError } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { eliminate } from '../../support/reference/als.ts';
import { randomRatings } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const session = await cpuSession();
const folder = temporaryFolder();
const RANK = 4;
const LAMBDA = 0.3;
const triples = randomRatings(71, 60, 40, 1100);
const ids = [...new Set(triples.map(({ user }) => user))];
const drinks = ['tea', 'coffee', 'cocoa'];
const people = ids.map((user, at) => ({ user, drink: drinks[at % 3], age: 20 + ((at * 7) % 31) }));
const columns = { drink: 'category', age: 'number' } as const;
const userAttributes = { data: session.fromRows(people), id: 'user', columns };
const dataOf = (rows: readonly { user: number; item: number; rating: number }[]) => session.fromRows(rows);
const kindOf = (item: number) => `k${Math.floor(item / 5) % 3}`;
/** Items with ids of four digits have no ratings. */
const itemAttributes = {
  data: session.fromRows(
    [...new Set(triples.map(({ item }) => item)), 5001, 5002].map((item) => ({ item, kind: kindOf(item) })),
  ),
  id: 'item',
};

const kinds: Readonly<Record<string, AlsOptions>> = {
  'without biases': { biases: false },
  'with biases, damping, an offset and an exponent': {
    biases: true,
    biasDamping: [3, 5],
    regOffset: 0.5,
    regExponent: 0.8,
  },
  'of a rank that conjugate gradients solve': { rank: 50 },
  "implicit, Spark's weights": { implicitPrefs: true, alpha: 3, weight: 'spark' },
  'implicit, the weights of iALS': {
    implicitPrefs: true,
    alpha: 2,
    unobservedWeight: 0.3,
    regExponent: 0.7,
    weight: 'spark',
  },
};

async function fit(options: AlsOptions): Promise<Model> {
  const als = new ALS({
    rank: RANK,
    regParam: LAMBDA,
    maxIter: 3,
    seed: 2,
    userAttributes,
    itemAttributes,
    ...options,
  });
  const model = await als.fit(dataOf(triples));
  return model.withUsers([
    { user: 9001, drink: 'tea', age: 44 },
    { user: 9002, drink: 'coffee' },
  ]);
}

/** Row u of A's prediction in float64: the encoding is that of docs/attributes.md. */
function predictedRow(model: Model, drink: string | undefined, age: number | undefined): number[] {
  const batch = model.userCoefficients;
  const rows = Array.from({ length: batch?.numRows ?? 0 }, (_, at) => batch?.get(at)?.toJSON());
  const ages = people.map((one) => one.age);
  const mean = ages.reduce((sum, one) => sum + one, 0) / ages.length;
  const deviation = Math.sqrt(ages.reduce((sum, one) => sum + (one - mean) ** 2, 0) / ages.length);
  const sum = Array.from({ length: model.features }, () => 0);
  for (const row of rows) {
    const { column, value, coefficients } = row as {
      column: string;
      value: string;
      coefficients: Float32Array;
    };
    const feature =
      column === ''
        ? 1
        : column === 'drink'
          ? Number(value === drink)
          : age === undefined
            ? 0
            : (age - mean) / deviation;
    Array.from(coefficients).forEach((one, k) => (sum[k] += feature * one));
  }
  return sum;
}

/** What a side is solved from, in float64. */
interface Fixed {
  /** The rows of the other side, by id, and which of them have ratings. */
  readonly rowOf: (id: number) => readonly number[];
  readonly rated: readonly number[];
  /** Where the model has biases: the columns of the solved side's own, and of the fixed side's. */
  readonly own: 0 | 1;
  readonly mean: number;
}

/** What is added to the diagonal, of factors and of the bias. */
function penaltyOf(
  { metadata }: Model,
  { n, ratings, side }: { readonly n: number; readonly ratings: number; readonly side: 0 | 1 },
): [number, number] {
  const { regExponent = 1, regOffset = 0, biasDamping = 0 } = metadata.params as AlsOptions;
  const damping = [biasDamping, biasDamping].flat()[side];
  return [
    LAMBDA * n ** regExponent + regOffset * Number(metadata.ratingDeviation ?? 0),
    LAMBDA * ratings + damping,
  ];
}

/** The row of a user, [x, β + μ, 1], or of an item, [θ, 1, γ], by a dense system. */
function solvedRow(
  model: Model,
  ratings: readonly { readonly id: number; readonly rating: number }[],
  prior: readonly number[],
  { rowOf, rated, own: side, mean }: Fixed,
): number[] {
  const params = model.metadata.params as AlsOptions;
  const { rank } = model;
  const [own, other] = [rank + side, rank + 1 - side];
  const biases = params.biases && !params.implicitPrefs;
  const size = rank + (biases ? 1 : 0);
  const a = Array.from({ length: size }, () => new Float64Array(size + 1));
  const add = (fixed: readonly number[], weight: number, target: number) => {
    const theta = [...fixed.slice(0, rank), 1];
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) a[i][j] += weight * theta[i] * theta[j];
      a[i][size] += target * theta[i];
    }
  };
  const alpha = Number(params.alpha ?? 1);
  const base = params.unobservedWeight === undefined ? 1 : 0;
  const unobserved = params.unobservedWeight ?? 1;
  if (params.implicitPrefs) for (const id of rated) add(rowOf(id), unobserved, 0);
  for (const { id, rating } of ratings) {
    const row = rowOf(id);
    if (params.implicitPrefs) add(row, alpha * rating, base + alpha * rating);
    else add(row, 1, rating - (biases ? mean + row[other] : 0));
  }
  const n = ratings.length + (params.implicitPrefs && base === 0 ? unobserved * rated.length : 0);
  const [shift, biasShift] = penaltyOf(model, { n, ratings: ratings.length, side });
  [...prior.slice(0, rank), ...(biases ? [prior[own] - mean] : [])].forEach((one, i) => {
    const by = i < rank ? shift : biasShift;
    a[i][i] += by;
    a[i][size] += by * one;
  });
  const x = Array.from(eliminate(a, size));
  if (!biases) return x;
  return side === 0 ? [...x.slice(0, rank), x[rank] + mean, 1] : [...x.slice(0, rank), 1, x[rank]];
}

const rowAt = (arrays: Model['userArrays'], id: number): number[] => {
  const at = arrays.ids.indexOf(id as never) * arrays.columns;
  return Array.from(arrays.values.subarray(at, at + arrays.columns));
};

/** A user who is drawn to a prior. */
function solved(model: Model, ratings: readonly RatedItem[], prior: readonly number[]): number[] {
  return solvedRow(
    model,
    ratings.map(({ item, rating = 1 }) => ({ id: Number(item), rating })),
    prior,
    {
      rowOf: (id) => rowAt(model.itemArrays, id),
      rated: [...new Set(triples.map(({ item }) => item))],
      own: 0,
      mean: Number(model.metadata.meanRating ?? 0),
    },
  );
}

/** An item that is drawn to a prior. */
function solvedItem(
  model: Model,
  ratings: readonly { readonly user: number; readonly rating: number }[],
  prior: readonly number[],
): number[] {
  const given = ratings.map(({ user, rating }) => ({ id: user, rating }));
  const rowOf = (id: number) => rowAt(model.userArrays, id);
  return solvedRow(model, given, prior, { rowOf, rated: ids, own: 1, mean: 0 });
}

const close = (found: ArrayLike<number>, wanted: readonly number[]) => {
  expect(found).toHaveLength(wanted.length);
  wanted.forEach((one, k) => expect(found[k]).toBeCloseTo(one, 4));
};

describe.each(Object.entries(kinds))('a model with attributes of users, %s', async (name, options) => {
  const model = await fit(options);
  const rated = triples.filter(({ user }) => user === ids[3]);
  const ratings: RatedItem[] = rated.slice(0, 5).map(({ item, rating }) => ({ item, rating }));
  const given = (user: number) => rated.slice(0, 5).map((row) => ({ ...row, user }));
  const scoreOf = (x: readonly number[], item: number) => {
    const at = model.itemArrays.ids.indexOf(item as never) * model.features;
    return x.reduce((sum, one, k) => sum + one * model.itemArrays.values[at + k], 0);
  };
  const nobody = predictedRow(model, undefined, undefined);

  it('draws users who are folded in to their attributes, or to what is predicted without', async () => {
    const { model: folded } = await model.foldIn(dataOf([...given(9001), ...given(9003), ...given(ids[4])]));
    const { values, ids: users } = folded.userArrays;
    const rowOf = (user: number) => {
      const at = users.indexOf(user as never) * model.features;
      return values.subarray(at, at + model.features);
    };
    close(rowOf(9001), solved(model, ratings, predictedRow(model, 'tea', 44)));
    close(rowOf(9003), solved(model, ratings, nobody));
    close(rowOf(ids[4]), solved(model, ratings, predictedRow(model, people[4].drink, people[4].age)));
  });

  it('knows users without ratings once it is loaded, and no attributes of others', async () => {
    await model.save(join(folder, name.replaceAll(/\W/g, '-')), { overwrite: true });
    const loaded = await session.loadModel(join(folder, name.replaceAll(/\W/g, '-')));
    const { model: folded } = await loaded.foldIn(dataOf([...given(9001), ...given(ids[4])]));
    const { values } = folded.userArrays;
    const [own, cold] = [values.subarray(0, model.features), values.subarray(model.features)];
    close(own, solved(model, ratings, nobody));
    close(cold, solved(model, ratings, predictedRow(model, 'tea', 44)));
  });

  it('recommends and explains by the attributes of a request, or of a user', async () => {
    const users: readonly [Omit<GivenUser, 'ratings'>, number[]][] = [
      [{}, nobody],
      [{ user: 9002 }, predictedRow(model, 'coffee', undefined)],
      [{ user: 123_456 }, nobody],
      [{ user: 9002, attributes: { drink: 'cocoa', age: 33 } }, predictedRow(model, 'cocoa', 33)],
      [{ attributes: { drink: 'water' } }, nobody],
    ];
    for (const [user, prior] of users) {
      const x = solved(model, ratings, prior);
      const { items, known } = await model.recommend({ ratings, ...user }, 3);
      expect(known).toBe(true);
      for (const { item, score } of items) expect(score).toBeCloseTo(scoreOf(x, Number(item)), 4);
      for (const item of [Number(items[0].item), 5001]) {
        const found = await model.explain({ ratings, ...user }, item);
        expect(found.score).toBeCloseTo(scoreOf(x, item), 4);
        const shares = found.contributions.reduce((sum, { share }) => sum + share, 0);
        expect(found.base + (found.userAttributes ?? Number.NaN) + shares).toBeCloseTo(found.score, 8);
        // The share of the attributes is linear in them: a prior of zeros takes it away.
        const without = solved(
          model,
          ratings,
          prior.map((_, k) => (k === model.rank ? Number(model.metadata.meanRating ?? 0) : 0)),
        );
        expect(found.userAttributes).toBeCloseTo(found.score - scoreOf(without, item), 4);
      }
    }
    const found = await model.explain({ user: 9001, ratings: dataOf(given(9001)) }, 5001);
    expect(found.score).toBeCloseTo(scoreOf(solved(model, ratings, predictedRow(model, 'tea', 44)), 5001), 4);
    expect(found.modelScore).toBeCloseTo(model.score(9001, 5001) ?? Number.NaN, 4);
  });

  it("says what an item's attributes add to a score, which they are of an item without ratings", async () => {
    const x = solved(model, ratings, predictedRow(model, 'tea', 44));
    const coefficients = (value: string): number[] => {
      const batch = model.itemCoefficients;
      const rows = Array.from({ length: batch?.numRows ?? 0 }, (_, at) => batch?.get(at)?.toJSON());
      return Array.from(rows.find((row) => row?.value === value)?.coefficients as Float32Array);
    };
    const shareOf = (value: string) => coefficients(value).reduce((sum, one, k) => sum + one * x[k], 0);
    for (const item of [triples[0].item, 5001]) {
      const { score, itemAttributes } = await model.explain({ user: 9001, ratings }, item);
      const value = kindOf(item);
      expect(itemAttributes).toEqual([{ column: 'kind', value, share: expect.closeTo(shareOf(value), 4) }]);
      if (item === 5001) expect(score).toBeCloseTo(shareOf('') + shareOf(value), 4);
    }
    const loaded = await session.loadModel(join(folder, name.replaceAll(/\W/g, '-')));
    const user = { user: 9001, ratings };
    expect(await loaded.explain(user, 5001)).not.toHaveProperty('itemAttributes');
    const given = await loaded.withItems([
      { item: triples[0].item, kind: 'k1' },
      { item: 5002, kind: 'new' },
    ]);
    expect((await given.explain(user, triples[0].item)).itemAttributes).toEqual([
      { column: 'kind', value: 'k1', share: expect.closeTo(shareOf('k1'), 4) },
    ]);
    expect((await given.explain(user, 5002)).itemAttributes).toEqual([]);
    expect(await given.explain(user, 5001)).not.toHaveProperty('itemAttributes');
    await loaded.close();
    await given.close();
  });

  it('recommends to a user by attributes alone', async () => {
    const prior = predictedRow(model, 'tea', 44);
    for (const user of [{ attributes: { drink: 'tea', age: 44 } }, { user: 9001 }]) {
      const { items, known } = await model.recommend({ ratings: [{ item: 77_777, rating: 1 }], ...user }, 4);
      expect(items).toHaveLength(4);
      expect(known).toBe(true);
      expect(items.map(({ item }) => item)).toEqual(
        (await model.recommend(9001, 4)).items.map(({ item }) => item),
      );
      for (const { item, score } of items) expect(score).toBeCloseTo(scoreOf(prior, Number(item)), 4);
      const found = await model.explain({ ratings: [], ...user }, 5001);
      expect(found.score).toBeCloseTo(scoreOf(prior, 5001), 4);
      expect(found.base + (found.userAttributes ?? Number.NaN)).toBeCloseTo(found.score, 8);
    }
    expect(await model.recommend({ ratings: [], attributes: { drink: 'water' } }, 4)).toMatchObject({
      known: false,
      items: [],
    });
    expect(await model.explain([], 5001)).toMatchObject({ known: false, contributions: [] });
  });

  it('solves items from their ratings, drawn to their attributes', async () => {
    const raters = ids.slice(5, 12).map((user, at) => ({ user, rating: 1 + (at % 5) }));
    const [warm] = triples;
    const rows = [
      ...raters.map((row) => ({ ...row, item: 5002 })),
      ...raters.slice(2).map((row) => ({ ...row, item: 7000 })),
      { user: 77_777, item: 5002, rating: 3 },
      { user: 77_777, item: 7001, rating: 3 },
      { ...warm, rating: warm.rating + 1 },
    ];
    const { model: made, ...counts } = await model.foldInItems(dataOf(rows));
    expect(counts).toEqual({ items: 2, kept: 1, withoutUsers: 1, ratings: 12, coldRatings: 2 });
    expect(made.itemCount).toBe(model.itemCount + 1);
    const row = (item: number) => rowAt(made.itemArrays, item);
    close(row(5002), solvedItem(model, raters, rowAt(model.itemArrays, 5002)));
    const constant = model.itemCoefficients?.get(0)?.toJSON().coefficients as Float32Array;
    close(row(7000), solvedItem(model, raters.slice(2), Array.from(constant)));
    for (const item of [warm.item, 5001]) expect(row(item)).toEqual(rowAt(model.itemArrays, item));
    const countOf = (item: number) => made.itemCounts?.[made.itemArrays.ids.indexOf(item as never)];
    expect([countOf(5001), countOf(5002), countOf(7000)]).toEqual([0, 7, 5]);
    expect(made.userArrays.values).toEqual(model.userArrays.values);
    // It has ratings now, and keeps its factors; its attributes are known as before.
    const again = await made.foldInItems(dataOf(rows.slice(0, 3)));
    expect([again.items, again.kept]).toEqual([0, 1]);
    expect(rowAt(again.model.itemArrays, 5002)).toEqual(row(5002));
    expect((await made.explain({ user: 9001, ratings }, 5002)).itemAttributes).toHaveLength(1);
    // A loaded model does the same.
    await made.save(join(folder, 'items'), { overwrite: true });
    const loaded = await session.loadModel(join(folder, 'items'));
    expect(rowAt(loaded.itemArrays, 5002)).toEqual(row(5002));
    const later = await loaded.foldInItems(dataOf(raters.map((one) => ({ ...one, item: 5001 }))));
    close(rowAt(later.model.itemArrays, 5001), solvedItem(model, raters, rowAt(model.itemArrays, 5001)));
    await expect(
      model.foldInItems(session.fromRows([{ user: ids[0], item: 'x', rating: 1 }])),
    ).rejects.toThrow('ids are utf8 here, but int32');
  });

  it('refuses attributes that it does not have, and values that do not fit', async () => {
    const bad: readonly [unknown, string][] = [
      [{ drnk: 'tea' }, 'attributes has the unknown field "drnk". Is it drink?'],
      [{ age: 'old' }, '"old" is not a number'],
      [['tea'], 'attributes must be an object with values by name'],
    ];
    for (const [attributes, message] of bad) {
      const user = { ratings, attributes } as GivenUser;
      await expect(model.recommend(user, 3)).rejects.toThrow(message);
      await expect(model.explain(user, 5001)).rejects.toThrow(message);
    }
    await expect(model.recommend({ ratings, user: {} as never }, 3)).rejects.toThrow(
      'the field user takes an id',
    );
    await model.close();
  });
});

it('a model without attributes of users refuses attributes of a request', async () => {
  const model = await new ALS({ rank: 3, maxIter: 2 }).fit(dataOf(triples));
  const user = { ratings: [{ item: triples[0].item, rating: 3 }], attributes: { drink: 'tea' } };
  await expect(model.recommend(user, 3)).rejects.toThrow(UsageError);
  await expect(model.recommend(user, 3)).rejects.toThrow('the model has no attributes of users');
  expect(await model.explain({ ...user, attributes: undefined }, triples[0].item)).not.toHaveProperty(
    'userAttributes',
  );
});

it.each(['bm25', 'raw', 'auto'] as const)(
  'a model without attributes solves items again as the training has them: clicks, weights of %s',
  async (weight) => {
    const clicks = triples.map((row) => ({ ...row, rating: 1 + (row.rating % 2) }));
    const options = {
      implicitPrefs: true,
      weight,
      alpha: 5,
      rank: 5,
      regParam: 0.07,
      seed: 2,
      solver: 'cholesky',
    } as const;
    const { item } = triples[0];
    const all = await new ALS({ ...options, maxIter: 40 }).fit(dataOf(clicks));
    // The same model without the ratings of one item.
    const [{ values, ids: items }, at] = [all.itemArrays, all.itemArrays.ids.indexOf(item as never)];
    const counts = all.itemCounts?.map((count, k) => (k === at ? 0 : count));
    const cold = new Model({
      rank: 5,
      users: keysOfIds(Array.from(all.userArrays.ids as Int32Array), 'int32'),
      items: keysOfIds(Array.from(items as Int32Array), 'int32'),
      userFactors: all.userArrays.values,
      itemFactors: values.map((one, k) => (Math.floor(k / 5) === at ? 0 : one)),
      itemCounts: counts,
      columns: all.columns,
      coldStartStrategy: 'nan',
      session,
      metadata: all.metadata,
    });
    const { model: made, kept } = await cold.foldInItems(dataOf(clicks));
    expect(kept).toBe(all.itemCount - 1);
    const wanted = rowAt(all.itemArrays, item);
    rowAt(made.itemArrays, item).forEach((one, k) => expect(one).toBeCloseTo(wanted[k], 2));
  },
);
