import { cpSync, rmSync, writeFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { Field, FixedSizeList, Float32, Float64, Int32, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, DataError, Model, UsageError, type ProgressEvent } from '../../index.ts';
import { keysOfIds } from '../../engine/keys/find-id.ts';
import { keyText, type KeyType } from '../../engine/keys/key-column.ts';
import { CounterRandom } from '../../engine/random.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import { withAttributeRows } from '../../operators/attributes/cold-rows.ts';
import { encodeAttributes } from '../../operators/attributes/attribute-rows.ts';
import { KeptRows } from '../../operators/attributes/kept-rows.ts';
import { RowEncoder } from '../../operators/attributes/encode-rows.ts';
import { learnEncoding } from '../../operators/attributes/learn-encoding.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const session = await cpuSession();
const folder = temporaryFolder();
const RANK = 4;
const random = new CounterRandom(5);
const genres = ['Drama', 'War', 'Comedy', 'Crime'];
const products = Array.from({ length: 40 }, (_, i) => ({
  sku: i + 1,
  genre: genres[i % 4],
  price: (i % 10) + 0.5,
  title: `the ${genres[(i * 3) % 4].toLowerCase()} of ${i % 3} men and ${i % 5} dogs`,
}));
const itemsOf = (from: number, to: number) => session.fromRows(products.slice(from, to));
const rated = Array.from({ length: 30 }, (_, i) => i + 1);
const users = Array.from({ length: 20 }, (_, i) => 10 * i);

/** A model whose items are exactly what their attributes predict; the last of them has no ratings. */
async function plantedModel(type: KeyType = 'int32'): Promise<Model> {
  const wanted = ['genre', 'price', 'title'].map((name) => ({ name }));
  const all = itemsOf(0, 40);
  const encoding = await runInto(all.plan, learnEncoding(wanted, { minCount: 2 }), session.context());
  const features = encoding.weights.length;
  const coefficients = {
    features,
    columns: RANK,
    values: Float32Array.from({ length: features * RANK }, (_, at) => random.uniform(at) - 0.5),
  };
  const sink = encodeAttributes(new RowEncoder(encoding), 'sku', encoding);
  const rows = await runInto(itemsOf(0, 30).plan, sink, session.context());
  const none = {
    ids: keysOfIds([], type),
    factors: new Float32Array(0),
    columns: RANK,
    counts: undefined,
    means: undefined,
  };
  const { ids, factors } = withAttributeRows(none, { ...rows, ids: keysOfIds(rated, type) }, coefficients);
  return new Model({
    rank: RANK,
    users: keysOfIds(users, 'int32'),
    items: ids,
    userFactors: Float32Array.from({ length: users.length * RANK }, (_, at) => random.uniform(1000 + at)),
    itemFactors: factors,
    itemCounts: Uint32Array.from(rated, (_, at) => (keyText(ids, at) === '30' ? 0 : 5)),
    userCounts: new Uint32Array(users.length).fill(5),
    means: {
      mean: 3,
      users: new Float32Array(users.length),
      items: new Float32Array(rated.length).fill(0.25),
    },
    columns: { user: 'user', item: 'sku', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session,
    metadata: { format: 1, items: 30, meanRating: 3, params: { regParam: 0.1 } },
    attributes: { item: { id: 'sku', encoding, coefficients } },
  });
}

const model = await plantedModel();
const rowOf = (made: Model, id: number) => {
  const at = made.itemArrays.ids.indexOf(id as never);
  return Array.from(made.itemArrays.values.subarray(at * RANK, (at + 1) * RANK));
};

describe('withItems', () => {
  it('gives new items the factors of their attributes, and keeps all others', async () => {
    const made = await model.withItems(itemsOf(30, 40));
    expect(made.itemCount).toBe(40);
    expect(Array.from(made.itemArrays.ids)).toEqual(products.map(({ sku }) => sku));
    for (const id of rated) expect(rowOf(made, id)).toEqual(rowOf(model, id));
    expect(Array.from(made.itemCounts ?? [])).toEqual([...Array(29).fill(5), ...Array(11).fill(0)]);
    expect(model.itemCount).toBe(30);
    // An item with the attributes of item 7 is item 7.
    const twin = await model.withItems([{ ...products[6], sku: 99 }]);
    expect(rowOf(twin, 99)).toEqual(rowOf(model, 7));
    expect(twin.score(10, 99)).toBe(model.score(10, 7));
  });

  it('of objects and of a data set are the same', async () => {
    const [some, others] = [
      await model.withItems(itemsOf(30, 40)),
      await model.withItems(products.slice(30)),
    ];
    expect(others.itemArrays).toEqual(some.itemArrays);
  });

  it('makes them known to recommend, similar, predict, and to lists', async () => {
    const made = await model.withItems([
      { ...products[0], sku: 0 },
      { ...products[6], sku: 99 },
    ]);
    expect((await made.similar(99, 1)).similar).toEqual([{ item: 7, similarity: expect.closeTo(1, 5) }]);
    const { items } = await made.recommend(10, 32);
    expect(items.map(({ item }) => item).sort((a, b) => Number(a) - Number(b))).toEqual([0, ...rated, 99]);
    const predicted = await made.predict(session.fromRows([{ user: 10, sku: 99 }])).toArray();
    expect(predicted).toMatchObject([{ prediction: expect.closeTo(model.score(10, 7) ?? 0, 5) }]);
    const lists = await made.recommendForAllUsers(32).toArray();
    expect(lists.filter((row) => (row as { sku: number }).sku === 99)).toHaveLength(users.length);
    await made.close();
  });

  it('leaves out items without ratings where they are excluded', async () => {
    const made = await model.withItems([{ ...products[6], sku: 99 }]);
    const excluded = { coldItems: 'exclude' } as const;
    const { items } = await made.recommend(10, 32, excluded);
    expect(items).toHaveLength(29);
    expect(items.some(({ item }) => item === 99 || item === 30)).toBe(false);
    const lists = (await made.recommendForAllUsers(32, excluded).toArray()) as { sku: number }[];
    expect(lists).toHaveLength(29 * users.length);
    const some = (await made.recommendForUsers([10], 32, excluded).toArray()) as { sku: number }[];
    expect(some).toHaveLength(29);
    await made.close();
  });

  it('says what it did: items with ratings keep their factors, others change', async () => {
    const events: ProgressEvent[] = [];
    const rows = [
      { ...products[0], sku: 1, genre: 'War' },
      { ...products[0], sku: 30 },
      { ...products[0], sku: 77 },
    ];
    const made = await model.withItems(rows, { onEvent: (event) => events.push(event) });
    expect(events).toEqual([
      {
        type: 'note',
        code: 'rows-added',
        count: 1,
        text: '1 items added by their attributes, 1 without ratings got factors of their new attributes, 1 are known and keep their factors',
      },
    ]);
    expect(rowOf(made, 1)).toEqual(rowOf(model, 1));
    expect(rowOf(made, 30)).toEqual(rowOf(model, 1));
    expect(made.itemCount).toBe(31);
  });

  it('counts unknown values and words, and takes another column of ids', async () => {
    const rows = [
      { product: 91, genre: 'Opera', price: 1, title: 'the opera of dogs' },
      { product: 92, genre: 'War', price: 1, title: null },
    ];
    for (const given of [rows, session.fromRows(rows)]) {
      const { model: made, ...counts } = await model.extended('item', given, { idCol: 'product' });
      expect(counts).toEqual({ added: 2, changed: 0, kept: 0, bare: 0, unknownValues: 2, withoutId: 0 });
      expect([made.hasItem(91), made.attributes?.item?.id]).toEqual([true, 'sku']);
    }
    await expect(model.withItems(rows, { idCol: 'genre' })).rejects.toThrow(
      'the option idCol of withItems is the name of a column of ids, got "genre"',
    );
  });

  it('takes ids of the type of the model', async () => {
    for (const type of ['int64', 'utf8'] as const) {
      const other = await plantedModel(type);
      const made = await other.withItems([{ ...products[6], sku: '99' }]);
      expect([type, made.hasItem('99'), made.score(10, '99')]).toEqual([type, true, other.score(10, '7')]);
    }
    const wide = session.fromRows([{ ...products[6], sku: 2n ** 40n }]);
    await expect(model.withItems(wide)).rejects.toThrow(
      'the ids of the model are int32, which cannot hold 1099511627776',
    );
    await expect(model.withItems(session.fromRows([{ ...products[6], sku: 'a' }]))).rejects.toThrow(
      'the ids of the model are int32, which cannot hold "a"',
    );
  });

  it('refuses what it cannot use', async () => {
    const bad: readonly [unknown, typeof UsageError | typeof DataError, string][] = [
      [5, UsageError, 'withItems takes a data set, the path of a file or an array of objects, got 5'],
      [[5], UsageError, 'withItems takes a data set, the path of a file or an array of objects'],
      ['none.csv', DataError, 'none.csv'],
      [[{ genre: 'War' }], UsageError, 'row 1 of withItems has no id in sku'],
      [[products[0], products[0]], DataError, 'the id 1 has attributes twice, in rows 1 and 2'],
      [[{ sku: 99, price: 'cheap' }], DataError, '"cheap" is not a number'],
      [session.fromRows([{ sku: 99, genre: 'War', title: 'a' }]), DataError, 'there is no column "price"'],
    ];
    for (const [rows, type, message] of bad) {
      const failure = await model.withItems(rows as never).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(type);
      expect(String(failure)).toContain(message);
    }
    await expect(model.withUsers([{ user: 1 }])).rejects.toThrow('the model has no attributes of users');
  });
});

describe('explain', () => {
  const ratings = [{ item: 3, rating: 5 }];
  const numbers = Array.from({ length: 30 }, (_, i) => ({
    sku: i + 1,
    price: i % 7 === 0 ? null : i % 5,
    look: [i % 2, 1 - (i % 3), 0.5],
    title: `a ${i % 2 === 0 ? 'red red' : 'blue'} hat of ${i % 4} weeks`,
  }));

  const table = new Table({
    sku: vectorFromArray(
      numbers.map(({ sku }) => sku),
      new Int32(),
    ),
    price: vectorFromArray(
      numbers.map(({ price }) => price),
      new Float64(),
    ),
    look: vectorFromArray(
      numbers.map(({ look }) => look),
      new FixedSizeList(3, new Field('item', new Float32())),
    ),
    title: vectorFromArray(
      numbers.map(({ title }) => title),
      new Utf8(),
    ),
  });

  it('has a share for each value, word and number of an item, and one for a vector', async () => {
    const trained = await new ALS({
      rank: RANK,
      maxIter: 3,
      biases: true,
      itemAttributes: {
        data: session.from(table.batches),
        id: 'sku',
        columns: { price: 'number', look: 'vector', title: 'words' },
      },
    }).fit(
      session.fromRows(
        Array.from({ length: 300 }, (_, n) => ({
          user: n % 20,
          sku: 1 + ((n * 7) % 30),
          rating: 1 + (n % 5),
        })),
        { columns: { item: 'sku' } },
      ),
    );
    const made = await trained.withItems([
      { ...numbers[1], sku: 50 },
      { sku: 51, price: null, title: 'RED' },
    ]);
    const { itemAttributes = [], score } = await made.explain(ratings, 50);
    expect(itemAttributes.map(({ column, value }) => `${column} ${value}`).sort()).toEqual([
      'look ',
      'price 1',
      'title 1',
      'title a',
      'title blue',
      'title hat',
      'title of',
      'title weeks',
    ]);
    const sizes = itemAttributes.map(({ share }) => Math.abs(share));
    expect(sizes).toEqual(sizes.toSorted((left, right) => right - left));
    // What is left is the constant's, the same for each item.
    const rest = itemAttributes.reduce((left, { share }) => left - share, score);
    const other = await made.explain(ratings, 51);
    expect(other.itemAttributes?.map(({ column, value }) => `${column} ${value}`).sort()).toEqual([
      'price missing',
      'title red',
    ]);
    expect(other.itemAttributes?.reduce((left, { share }) => left - share, other.score)).toBeCloseTo(rest, 4);
    // Attributes that are given again replace the first.
    const changed = await made.withItems([{ ...numbers[2], sku: 50 }]);
    expect((await changed.explain(ratings, 50)).itemAttributes?.some(({ value }) => value === 'blue')).toBe(
      false,
    );
    // An update keeps them.
    const updated = await made.update(
      session.fromRows([{ user: 3, sku: 50, rating: 4 }], { columns: { item: 'sku' } }),
    );
    expect((await updated.explain(ratings, 50)).itemAttributes).toHaveLength(8);
  });
});

describe('KeptRows', () => {
  it('finds the last attributes of each id, in few parts', () => {
    const matrixOf = (values: readonly number[]) => ({
      rows: values.length,
      features: 2,
      offsets: Int32Array.from([0, ...values], (_, at) => 2 * at),
      indices: Uint32Array.from({ length: 2 * values.length }, (_, at) => at % 2),
      values: Float32Array.from(values.flatMap((value) => [1, value])),
    });
    let kept = new KeptRows('int32');
    const wanted = new Map<number, number>();
    for (let n = 0; n < 500; n++) {
      const ids = [...new Set([random.below(9 * n, 40), random.below(9 * n + 1, 40)])];
      ids.forEach((id, at) => wanted.set(id, 10 * n + at));
      kept = kept.with({ ids: keysOfIds(ids, 'int64'), matrix: matrixOf(ids.map((_, at) => 10 * n + at)) });
    }
    const found = kept.of(
      keysOfIds(
        Array.from({ length: 45 }, (_, id) => id),
        'int32',
      ),
    );
    expect(found.map((one) => one && one.matrix.values[one.matrix.offsets[one.row] + 1])).toEqual(
      Array.from({ length: 45 }, (_, id) => wanted.get(id)),
    );
    expect(new Set(found.map((one) => one?.matrix)).size).toBeLessThan(8);
    expect(() => kept.with({ ids: keysOfIds([2n ** 40n], 'int64'), matrix: matrixOf([1]) })).toThrow(
      'the ids of the model are int32, which cannot hold 1099511627776',
    );
  });
});

describe('a saved model with attributes', () => {
  const at = (name: string) => join(folder, name);
  beforeAll(async () => model.save(at('model')));

  it('has its encoding and coefficients, and the same files each time', async () => {
    const loaded = await session.loadModel(at('model'));
    const [some, others] = [
      await loaded.withItems(products.slice(30)),
      await model.withItems(products.slice(30)),
    ];
    expect(some.itemArrays).toEqual(others.itemArrays);
    expect(loaded.attributes).toEqual(model.attributes);
    await loaded.save(at('again'));
    for (const name of [
      'metadata/part-00000',
      `itemAttributes/${readdirSync(at('model/itemAttributes'))[0]}`,
    ])
      expect(String(readFileSync(at(`again/${name}`)))).toBe(String(readFileSync(at(`model/${name}`))));
    expect((await session.loadModel(at('model'))).userCoefficients).toBeUndefined();
  });

  it('has them as Parquet that others read: column, value and the coefficients of each feature', async () => {
    const connection = await (await DuckDBInstance.create()).connect();
    const found = await connection.runAndReadAll(`from '${at('model')}/itemAttributes/*.parquet'`);
    const rows = found.getRowObjectsJS();
    const batch = model.itemCoefficients;
    expect(rows).toHaveLength(batch?.numRows ?? 0);
    expect(rows.slice(0, 6).map(({ column, value }) => `${String(column)}=${String(value)}`)).toEqual([
      '=',
      'genre=Comedy',
      'genre=Crime',
      'genre=Drama',
      'genre=War',
      'price=',
    ]);
    expect(rows[3].coefficients).toEqual(Array.from(batch?.get(3)?.coefficients ?? []));
  });

  it('is refused by name if they are missing or damaged', async () => {
    const damaged = async (damage: (folder: string, file: string) => void) => {
      rmSync(at('bad'), { recursive: true, force: true });
      cpSync(at('model'), at('bad'), { recursive: true });
      const [file] = readdirSync(at('bad/itemAttributes'));
      damage(at('bad/itemAttributes'), at(`bad/itemAttributes/${file}`));
      return session.loadModel(at('bad')).catch((error: unknown) => error);
    };
    const whole = readFileSync(at(`model/itemAttributes/${readdirSync(at('model/itemAttributes'))[0]}`));
    const missing = await damaged((path) => rmSync(path, { recursive: true }));
    expect(missing).toBeInstanceOf(DataError);
    expect(String(missing)).toContain('itemAttributes');
    const changed = await damaged((_, file) => {
      const bytes = Buffer.from(whole);
      bytes[bytes.length >> 1] ^= 1;
      writeFileSync(file, bytes);
    });
    expect(changed).toBeInstanceOf(DataError);
    expect(String(changed)).toContain('itemAttributes');
    const cut = await damaged((_, file) => writeFileSync(file, whole.subarray(0, whole.length / 2)));
    expect(cut).toBeInstanceOf(DataError);
    expect(String(cut)).toContain('itemAttributes');
  });
});

it('attributes given as rows of objects have lists of values and vectors', async () => {
  const shop = Array.from({ length: 20 }, (_, n) => ({
    sku: n,
    tags: n % 2 ? ['hot', 'sweet'] : ['cold'],
    vector: new Float32Array([n % 2, 0.25]),
  }));
  const data = Array.from({ length: 200 }, (_, n) => ({
    user: n % 20,
    sku: (n * 7) % 18,
    rating: 1 + (n % 5),
  }));
  const als = new ALS({
    rank: RANK,
    maxIter: 2,
    itemAttributes: { data: session.fromRows(shop), id: 'sku' },
  });
  const trained = await als.fit(session.fromRows(data, { columns: { item: 'sku' } }));
  const columns = trained.attributes?.item?.encoding.columns.map(({ name, kind }) => [name, kind]);
  expect(columns).toEqual([
    ['tags', 'values'],
    ['vector', 'vector'],
  ]);
  const twin = await trained.withItems([{ ...shop[18], sku: 99 }]);
  expect(twin.score(1, 99)).toBe(trained.score(1, 18));
});

it('items without ratings change neither the users that are folded in, nor explanations', async () => {
  const data = Array.from({ length: 300 }, (_, n) => ({ user: n % 20, sku: 1 + ((n * 7) % 30), rating: 1 }));
  const als = new ALS({
    implicitPrefs: true,
    unobservedWeight: 0.1,
    rank: RANK,
    itemAttributes: { data: itemsOf(0, 30), id: 'sku', columns: ['genre', 'price'] },
  });
  const trained = await als.fit(session.fromRows(data, { columns: { item: 'sku' } }));
  const wider = await trained.withItems(
    Array.from({ length: 3000 }, (_, n) => ({ sku: 1000 + n, genre: genres[n % 4], price: n % 9 })),
  );
  const clicks = session.fromRows([3, 8, 20].map((sku) => ({ user: 77, sku, rating: 1 })));
  const [one, other] = await Promise.all(
    [trained, wider].map(async (made) => {
      const { model: folded } = await made.foldIn(clicks);
      const { values } = folded.userArrays;
      const ratings = [3, 8, 20].map((item) => ({ item, rating: 1 }));
      const { contributions } = await made.explain(ratings, 5);
      return [Array.from(values.subarray(-RANK)), contributions];
    }),
  );
  expect(other).toEqual(one);
});
