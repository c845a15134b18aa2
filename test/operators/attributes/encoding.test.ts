import { join } from 'node:path';
import {
  Bool,
  Decimal,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
  type DataType,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { CapacityError, DataError, expr, UsageError } from '../../../index.ts';
import { keyText } from '../../../engine/keys/key-column.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { runInto } from '../../../engine/stream/logical-plan.ts';
import { requireAttributes } from '../../../operators/attributes/attribute-matrix.ts';
import { attributesOf, encodeAttributes } from '../../../operators/attributes/attribute-rows.ts';
import { plainBatch } from '../../../operators/attributes/attribute-values.ts';
import { RowEncoder } from '../../../operators/attributes/encode-rows.ts';
import {
  type AttributeEncoding,
  type AttributeKind,
  describeColumn,
  GrowingRows,
} from '../../../operators/attributes/encoding.ts';
import { learnEncoding } from '../../../operators/attributes/learn-encoding.ts';
import { wordsOf } from '../../../operators/attributes/tokens.ts';
import type { Dataset } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { dataFolder } from '../../support/data-folder.ts';

const session = await cpuSession();

type Columns = Readonly<Record<string, readonly [DataType, readonly unknown[]]>>;

function rowsOf(columns: Columns): Dataset {
  const children = Object.values(columns).map(([type, values]) => vectorFromArray(values, type).data[0]);
  const schema = new Schema(Object.entries(columns).map(([name, [type]]) => new Field(name, type, true)));
  const { length } = Object.values(columns)[0][1];
  const data = makeData({ type: new Struct(schema.fields), length, nullCount: 0, children });
  return session.from([new RecordBatch(schema, data)]);
}

type Kinds = Readonly<Record<string, AttributeKind | undefined>>;

function learned(rows: Dataset, columns: Kinds, minCount = 1): Promise<AttributeEncoding> {
  const wanted = Object.entries(columns).map(([name, kind]) => ({ name, kind }));
  return runInto(rows.plan, learnEncoding(wanted, { minCount }), session.context());
}

function encoded(rows: Dataset, encoding: AttributeEncoding, id = 'id') {
  return runInto(rows.plan, encodeAttributes(new RowEncoder(encoding), id, encoding), session.context());
}

/** The features of each row by name, without the constant: "genres=War". */
function named(encoding: AttributeEncoding, matrix: ReturnType<GrowingRows['matrix']>) {
  return Array.from({ length: matrix.rows }, (_, row) => {
    const features: Record<string, number> = {};
    for (let k = matrix.offsets[row]; k < matrix.offsets[row + 1]; k++) {
      const feature = matrix.indices[k];
      const column = encoding.columns.findLast(({ first }) => first <= feature);
      if (column === undefined) continue;
      const value = keyText(encoding.values, feature);
      features[`${column.name}=${value === '' ? feature - column.first : value}`] = matrix.values[k];
    }
    return features;
  });
}

async function features(rows: Dataset, columns: Kinds, minCount = 1) {
  const encoding = await learned(rows, columns, minCount);
  const { matrix } = await encoded(rows, encoding);
  requireAttributes('items', matrix, matrix.rows);
  return { said: encoding.columns.map(describeColumn), rows: named(encoding, matrix) };
}

const ids = (count: number): Columns => ({ id: [new Int32(), Array.from({ length: count }, (_, i) => i)] });
const repeated = (values: readonly unknown[], count: number) =>
  Array.from({ length: count }, (_, i) => values[i % values.length]);
const half = Math.fround(Math.SQRT1_2);

describe('the kind of a column', () => {
  const chosen: readonly [string, DataType, readonly unknown[], string][] = [
    ['short texts that repeat', new Utf8(), ['red', 'blue'], 'x: category, 2 values'],
    ['few whole numbers', new Int32(), [1, 2, 3], 'x: category, 3 values'],
    [
      'many whole numbers',
      new Int32(),
      Array.from({ length: 60 }, (_, i) => i),
      'x: number, mean 29.5, deviation 17.32',
    ],
    [
      'many 64-bit numbers',
      new Int64(),
      Array.from({ length: 60 }, (_, i) => BigInt(i)),
      'x: number, mean 29.5, deviation 17.32',
    ],
    ['truth values', new Bool(), [true, false], 'x: category, 2 values'],
    ['fractions', new Float32(), [0.5, 1.5], 'x: number, mean 1, deviation 0.5'],
    [
      'texts with a separator',
      new Utf8(),
      ['a|b', 'b|c', 'a'],
      'x: several values separated by "|", 3 values',
    ],
    [
      'texts with commas',
      new Utf8(),
      ['War, Drama', 'Drama'],
      'x: several values separated by ",", 2 values',
    ],
    [
      'sentences with commas',
      new Utf8(),
      ['Well, he said to us, not now', 'It was so'],
      'x: words, 10 words',
    ],
    [
      'texts of words',
      new Utf8(),
      ['a red shoe made of leather', 'a blue hat for the winter'],
      'x: words, 11 words',
    ],
    [
      'lists of text',
      new List(new Field('item', new Utf8())),
      [['a', 'b'], ['b']],
      'x: lists of values, 2 values',
    ],
    [
      'lists of floats',
      new List(new Field('item', new Float32())),
      [
        [1, 2],
        [3, 4],
      ],
      'x: vector, 2 numbers',
    ],
    [
      'lists of one length',
      new FixedSizeList(2, new Field('item', new Int32())),
      [
        [1, 2],
        [3, 4],
      ],
      'x: vector, 2 numbers',
    ],
  ];
  it.each(chosen)('%s', async (_, type, values, said) => {
    const count = 60 * Math.ceil(60 / values.length);
    const rows = rowsOf({ ...ids(count), x: [type, repeated(values, count)] });
    expect((await features(rows, { x: undefined })).said).toEqual([said]);
  });

  it('of texts is words where most are distinct, though they are short', async () => {
    const rows = rowsOf({ ...ids(3), x: [new Utf8(), ['red shoe', 'blue shoe', 'green hat']] });
    expect((await features(rows, { x: undefined }, 2)).said).toEqual([
      'x: words, 1 word, 4 rare ones left out',
    ]);
  });

  it('can be named', async () => {
    const rows = rowsOf({ ...ids(2), x: [new Utf8(), ['10', '30']] });
    expect((await features(rows, { x: 'number' })).said).toEqual(['x: number, mean 20, deviation 10']);
    expect((await features(rows, { x: 'category' })).said).toEqual(['x: category, 2 values']);
  });
});

describe('a row', () => {
  it('has a sum of squares of 1 in each column', async () => {
    const rows = rowsOf({
      ...ids(4),
      brand: [new Utf8(), ['x', 'y', 'x', ' y ']],
      genres: [new Utf8(), ['War|Drama', 'War', ' Drama | War |', 'Drama|Drama']],
      price: [new Float32(), [1, 3, 1, 3]],
      title: [new Utf8(), ['the red shoe', 'The blue shoe', 'the blue hat', 'the the hat']],
    });
    const found = await features(rows, {
      brand: 'category',
      genres: 'values',
      price: 'number',
      title: 'words',
    });
    const [of2, of3, of4] = [2, 3, 4].map((count) => 1 + Math.log(5 / (1 + count)));
    const [the, shoe, twice] = [of4, of2, 1 + Math.log(2)];
    const red = 1 + Math.log(5 / 2);
    const norm = Math.hypot(the, shoe, red);
    expect(of3).toBeLessThan(of2);
    expect(found.rows[0]).toEqual({
      'brand=x': 1,
      'genres=Drama': half,
      'genres=War': half,
      'price=0': -1,
      'title=the': expect.closeTo(the / norm, 6),
      'title=red': expect.closeTo(red / norm, 6),
      'title=shoe': expect.closeTo(shoe / norm, 6),
    });
    expect(found.rows[3]).toMatchObject({ 'brand=y': 1, 'genres=Drama': 1, 'price=0': 1 });
    expect(found.rows[3]['title=the']).toBeCloseTo((twice * the) / Math.hypot(twice * the, of2), 6);
    expect(found.rows[2]).toMatchObject({ 'genres=Drama': half, 'genres=War': half });
  });

  it('has no feature of a missing value, and a feature of its own for a missing number', async () => {
    const vectors = new List(new Field('item', new Float32(), true));
    const rows = rowsOf({
      ...ids(3),
      brand: [new Utf8(), ['x', null, '  ']],
      price: [new Float32(), [2, Number.NaN, null]],
      vector: [vectors, [[3, 4], null, [1, Number.NaN]]],
      tags: [new List(new Field('item', new Utf8(), true)), [['a', null], [], null]],
    });
    const found = await features(rows, {
      brand: undefined,
      price: undefined,
      vector: undefined,
      tags: undefined,
    });
    expect(found.rows).toEqual([
      { 'brand=x': 1, 'price=0': 0, 'vector=0': Math.fround(0.6), 'vector=1': Math.fround(0.8), 'tags=a': 1 },
      { 'price=missing': 1 },
      { 'price=missing': 1 },
    ]);
    expect(found.said[1]).toBe('price: number, mean 2, deviation 1, 2 missing');
  });

  it('has vectors of a mean square norm of 1, and no number far from the others', async () => {
    const numbers = [...Array.from({ length: 99 }, () => 1), 1e6];
    const vectors = numbers.map((value) => [value, 0]);
    const rows = rowsOf({
      ...ids(100),
      vector: [new FixedSizeList(2, new Field('item', new Float32())), vectors],
      price: [new Float32(), numbers],
    });
    const found = await features(rows, { vector: undefined, price: undefined });
    expect(found.rows[99]['vector=0']).toBe(5);
    expect(found.rows[99]['price=0']).toBe(5);
    expect(found.rows[0]['vector=1']).toBeUndefined();
  });

  it('is the same for the same values in any order of the rows', async () => {
    const random = new CounterRandom(3);
    const values = Array.from({ length: 500 }, (_, i) => random.uniform(i));
    const columns = (order: (rows: readonly number[]) => readonly number[]) => {
      const at = order(values.map((_, i) => i));
      return rowsOf({
        id: [new Int32(), at],
        price: [new Float32(), at.map((i) => values[i])],
        brand: [new Utf8(), at.map((i) => `b${Math.floor(20 * values[i])}`)],
      });
    };
    const [some, others] = [columns((at) => at), columns((at) => at.toReversed())];
    const kinds = { price: undefined, brand: undefined };
    const one = await learned(some, kinds, 2);
    expect(await learned(others, kinds, 2)).toEqual(one);
  });

  it('leaves out values in fewer rows than minCount, and values that training did not have', async () => {
    const rows = rowsOf({ ...ids(4), genres: [new Utf8(), ['a|b', 'a|c', 'a', 'b|a']] });
    const encoding = await learned(rows, { genres: 'values' }, 2);
    expect(encoding.columns.map(describeColumn)).toEqual([
      'genres: several values separated by "|", 2 values, 1 rare ones left out',
    ]);
    const to = new GrowingRows();
    new RowEncoder(encoding).encode(plainBatch([{ genres: 'a|c' }, { genres: 'never' }, {}]), to);
    expect(named(encoding, to.matrix(3))).toEqual([{ 'genres=a': 1 }, {}, {}]);
  });

  it('of a plain object is the row of the same values in Arrow', async () => {
    const vectors = new FixedSizeList(2, new Field('item', new Float32()));
    const plain = [
      { id: 0, brand: 'x', tags: ['a', 'b'], size: 1n, vector: [1, 2], title: 'Grüße aus Köln' },
      { id: 1, brand: 'ü', tags: [], size: 2n, vector: [3, 4], title: '東京の夜' },
    ];
    const rows = rowsOf({
      id: [new Int32(), [0, 1]],
      brand: [new Utf8(), plain.map(({ brand }) => brand)],
      tags: [new List(new Field('item', new Utf8())), plain.map(({ tags }) => tags)],
      size: [new Int64(), plain.map(({ size }) => size)],
      vector: [vectors, plain.map(({ vector }) => vector)],
      title: [new Utf8(), plain.map(({ title }) => title)],
    });
    const kinds = { brand: undefined, tags: undefined, size: undefined, vector: undefined, title: undefined };
    const encoding = await learned(rows, kinds);
    const { matrix } = await encoded(rows, encoding);
    const to = new GrowingRows();
    new RowEncoder(encoding).encode(plainBatch(plain), to);
    expect(to.matrix(matrix.features)).toEqual({
      ...matrix,
      offsets: Int32Array.from(matrix.offsets),
      indices: Uint32Array.from(matrix.indices),
      values: Float32Array.from(matrix.values),
    });
    expect(named(encoding, matrix)[1]).toMatchObject({ 'brand=ü': 1 });
  });
});

describe('words', () => {
  it('are those of the Unicode segmenter, in lower case', () => {
    expect(wordsOf("Don't panic: 3.5 Stars_x, e.g. THIS")).toEqual([
      "don't",
      'panic',
      '3.5',
      'stars_x',
      'e.g',
      'this',
    ]);
    expect(wordsOf("L'Été à 20 °C")).toEqual(["l'été", 'à', '20', 'c']);
    expect(wordsOf('東京の夜').length).toBeGreaterThan(1);
    expect(wordsOf(' ,;_ ')).toEqual([]);
  });

  it('of random ASCII texts are exactly those of Intl.Segmenter', () => {
    const random = new CounterRandom(7);
    const segmenter = new Intl.Segmenter('und', { granularity: 'word' });
    const letters = 'ab1_\'.:,;- "z9\t';
    for (let draw = 0; draw < 5000; draw++) {
      const letter = (_: unknown, k: number) =>
        letters[Math.floor(letters.length * random.uniform(8 * draw + k))];
      const text = Array.from({ length: 8 }, letter).join('');
      const expected = [...segmenter.segment(text)].filter(({ segment }) => /[a-z0-9]/.test(segment));
      expect([text, ...wordsOf(text)]).toEqual([text, ...expected.map(({ segment }) => segment)]);
    }
  });
});

describe('rows of training ids', () => {
  const products = rowsOf({
    sku: [new Utf8(), ['b', 'a', 'x', 'c']],
    brand: [new Utf8(), ['1', '2', '3', '4']],
  });
  it('are in the order of the ids; an id without attributes has the constant alone', async () => {
    const encoding = await learned(products, { brand: 'category' });
    const rows = await encoded(products, encoding, 'sku');
    const keys = {
      type: 'utf8' as const,
      offsets: Int32Array.of(0, 1, 2, 3),
      bytes: new TextEncoder().encode('abq'),
    };
    const { matrix, known } = attributesOf(rows, keys, 'sku');
    expect(known).toBe(2);
    expect(named(encoding, matrix)).toEqual([{ 'brand=2': 1 }, { 'brand=1': 1 }, {}]);
    requireAttributes('items', matrix, 3);
  });

  it('are found by ids of any type that can be compared', async () => {
    const types: readonly [DataType, readonly unknown[]][] = [
      [new Int32(), [5, 7]],
      [new Int64(), [5n, 7n]],
      [new Float32(), [5, 7]],
      [new Decimal(0, 9, 128), [Uint32Array.of(5, 0, 0, 0), Uint32Array.of(7, 0, 0, 0)]],
    ];
    for (const [type, values] of types) {
      const rows = rowsOf({ id: [type, values], brand: [new Utf8(), ['a', 'b']] });
      const encoding = await learned(rows, { brand: 'category' });
      const { matrix } = attributesOf(
        await encoded(rows, encoding),
        { type: 'int32', values: Int32Array.of(7, 9) },
        'id',
      );
      expect([String(type), ...named(encoding, matrix)]).toEqual([String(type), { 'brand=b': 1 }, {}]);
    }
  });

  it('are an error if no id has attributes, or the ids are text on one side only', async () => {
    const encoding = await learned(products, { brand: 'category' });
    const rows = await encoded(products, encoding, 'sku');
    const other = {
      type: 'utf8' as const,
      offsets: Int32Array.of(0, 1),
      bytes: new TextEncoder().encode('q'),
    };
    expect(() => attributesOf(rows, other, 'sku')).toThrow(
      'their ids are such as b, those of the ratings such as q',
    );
    expect(() => attributesOf(rows, { type: 'int32', values: Int32Array.of(1) }, 'sku')).toThrow(
      'ids are int32 here, but utf8',
    );
  });
});

describe('bad input', () => {
  const text = new Utf8();
  const bad: readonly [string, Columns, Kinds, new (...args: never[]) => Error, string][] = [
    [
      'an id twice',
      { id: [new Int32(), [1, 2, 1]], x: [text, ['a', 'b', 'c']] },
      { x: 'category' },
      DataError,
      'the id 1 has attributes twice, in rows 1 and 3',
    ],
    [
      'vectors of unequal lengths',
      { ...ids(2), x: [new List(new Field('item', new Float32())), [[1, 2], [1]]] },
      { x: undefined },
      DataError,
      'a vector has 1 numbers, and others have 2',
    ],
    [
      'a text as a number',
      { ...ids(1), x: [text, ['12 EUR']] },
      { x: 'number' },
      DataError,
      '"12 EUR" is not a number',
    ],
    ['a column that is missing', { ...ids(1) }, { x: undefined }, DataError, 'there is no column "x"'],
    [
      'a kind that the type cannot have',
      { ...ids(1), x: [new Int32(), [1]] },
      { x: 'vector' },
      UsageError,
      'the column "x" is Int32, which cannot be an attribute (vector)',
    ],
    [
      'structs',
      { ...ids(1), x: [new Struct([new Field('a', text)]), [{ a: 'b' }]] },
      { x: undefined },
      UsageError,
      'cannot be an attribute',
    ],
  ];
  it.each(bad)('%s', async (_, columns, kinds, type, message) => {
    const failure = await features(rowsOf(columns), kinds).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(type);
    expect(String(failure)).toContain(message);
  });

  it('all missing: no features, and said', async () => {
    const rows = rowsOf({ ...ids(2), x: [text, [null, null]], y: [new Float32(), [null, Number.NaN]] });
    const found = await features(rows, { x: undefined, y: undefined });
    expect(found.said).toEqual([
      'x: category, 0 values, 2 missing',
      'y: number, mean 0, deviation 1, 2 missing',
    ]);
    expect(found.rows).toEqual([{ 'y=missing': 1 }, { 'y=missing': 1 }]);
  });

  it('a million distinct values: each has a feature; more than 2,097,152 are refused by number', async () => {
    const count = 1_000_000;
    const values = Array.from({ length: count }, (_, i) => `v${i}`);
    const rows = session.fromRows(() => values.map((x, id) => ({ id, x })));
    const encoding = await learned(rows, { x: 'category' });
    expect(encoding.columns.map(describeColumn)).toEqual(['x: category, 1,000,000 values']);
    const again = (end: string) => rows.withColumn('x', expr(`x || '${end}'`));
    const many = again('-1').union(rows, again('-2'));
    const failure = await learned(many, { x: 'category' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CapacityError);
    expect(String(failure)).toContain('the column "x" has more than 2,097,152 distinct values');
  });
});

const movies = dataFolder('ml-latest-small');
describe.runIf(movies !== undefined)('movies of MovieLens', () => {
  it('have genres and words of titles', async () => {
    const rows = session.read.parquet(join(movies ?? '', 'movies.parquet'));
    const found = await learned(rows, { genres: undefined, title: undefined }, 2);
    expect(found.columns.map(describeColumn)).toEqual([
      'genres: several values separated by "|", 20 values',
      'title: words, 3,201 words, 5,963 rare ones left out',
    ]);
  });
});
