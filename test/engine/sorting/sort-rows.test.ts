/** Random tables in the order of random keys, as DuckDB orders them. FACTORFLOW_SEED draws others. */
import {
  Dictionary,
  Field,
  Float64,
  Int32,
  LargeUtf8,
  type RecordBatch,
  RecordBatch as Batch,
} from 'apache-arrow';
import {
  Binary,
  Decimal,
  DurationSecond,
  Float16,
  makeData,
  Null,
  Schema,
  Struct,
  TimeSecond,
  type TypeMap,
  Uint64,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { type SortKey, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import { sortRows } from '../../../engine/sorting/sort-rows.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { batchOf, column } from '../expressions/evaluated.ts';
import { batchOfCells, drawCells, duckTable, randomColumns } from '../expressions/random-rows.ts';
import { everyNth, sampleSize } from '../../support/deep.ts';

const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
let draws = 0;
const random = () => seed.uniform(draws++);
const texts = [
  '',
  'a',
  'a\0',
  'abcdefgh',
  'abcdefgh\0',
  'abcdefghi',
  'abcdefghij',
  'abcdefghzz',
  'é',
  '😀',
  '\uffff',
];
const drawn = randomColumns(random);
const columns = {
  ...drawn,
  zero: { ...drawn[nameOf('float64')], draw: () => [0, -0, 1, -1, Number.NaN][Math.floor(random() * 5)] },
  prefixed: {
    ...drawn[nameOf('text')],
    draw: () => texts[Math.floor(random() * texts.length)].replaceAll('\0', '\u0001'),
  },
};

function nameOf(kind: string): string {
  return Object.keys(drawn).find((name) => drawn[name].kind === kind) ?? expect.fail(`no column of ${kind}`);
}

const order = (batch: RecordBatch, keys: readonly SortKey[]) => [
  ...sortRows(new SortKeys(batch.schema, keys).of(batch)),
];

const sqlOf = ({ column: name, descending = false, nulls }: SortKey) =>
  `"${name}" ${descending ? 'DESC' : 'ASC'} NULLS ${nulls ?? (descending ? 'LAST' : 'FIRST')}`;

function nullable(batch: RecordBatch): RecordBatch {
  const fields = batch.schema.fields.map(({ name, type }) => new Field(name, type, true));
  const struct = new Struct(fields);
  return new Batch(
    new Schema(fields),
    makeData({ type: struct, length: batch.numRows, children: batch.data.children }),
  );
}

async function compare(rows: number, keys: readonly SortKey[]): Promise<void> {
  const cells = drawCells(columns, rows, () => random() < 0.2);
  const connection = await duckdb();
  for (const statement of duckTable('sorted', columns, cells, 'row number')) await connection.run(statement);
  const skipped = Math.floor(rows / 7);
  const found = await duckRows(
    `SELECT "row number" FROM sorted WHERE "row number" >= ${skipped} ORDER BY ${keys.map(sqlOf).join(', ')}, "row number"`,
  );
  const slice = nullable(batchOfCells(columns, cells)).slice(skipped);
  expect(order(slice, keys), JSON.stringify(keys)).toEqual(found.map(([row]) => Number(row) - skipped));
}

it.each(Object.keys(columns))(
  'orders %s as DuckDB does, in each direction, nulls first and last',
  async (name) => {
    const orders = [false, true].flatMap((descending) =>
      ([undefined, 'first', 'last'] as const).map((nulls) => ({ descending, ...(nulls && { nulls }) })),
    );
    for (const one of everyNth(orders, 4)) await compare(150, [{ column: name, ...one }]);
  },
);

it('orders by several random keys as DuckDB does', async () => {
  const names = Object.keys(columns);
  for (let table = 0; table < sampleSize(40); table++) {
    const keys = Array.from({ length: 2 + Math.floor(random() * 3) }, (): SortKey => ({
      column: names[Math.floor(random() * names.length)],
      descending: random() < 0.5,
      nulls: random() < 0.5 ? 'first' : 'last',
    }));
    await compare(Math.floor(random() * 300), [{ column: 'prefixed', descending: random() < 0.5 }, ...keys]);
  }
});

function single(data: RecordBatch['data']['children'][number]): RecordBatch {
  const fields = [new Field('x', data.type, true)];
  return new Batch(
    new Schema(fields),
    makeData({ type: new Struct(fields), length: data.length, children: [data] }),
  );
}

it('orders an empty batch, and equal rows by position', () => {
  const empty = single(vectorFromArray([], new Int32()).data[0] ?? column('float64', []));
  expect(order(empty, [{ column: 'x' }])).toEqual([]);
  const zeros = single(vectorFromArray([0, -0, 0, -0]).data[0]);
  expect(order(zeros, [{ column: 'x', descending: true }])).toEqual([0, 1, 2, 3]);
});

it('orders wide texts, dictionaries, uint64, float16 and decimals', () => {
  const words = ['pear tree 2', null, 'apple', 'pear tree 1', 'apple', '', 'a\0', 'a'];
  const sorted = [1, 5, 7, 6, 2, 4, 3, 0];
  expect(order(single(vectorFromArray(words, new LargeUtf8()).data[0]), [{ column: 'x' }])).toEqual(sorted);
  const dictionary = vectorFromArray(words, new Dictionary(new Utf8(), new Int32())).data[0];
  expect(order(single(dictionary), [{ column: 'x' }])).toEqual(sorted);
  expect(order(single(dictionary).slice(2, 6), [{ column: 'x' }])).toEqual([3, 0, 2, 1]);
  const longs = vectorFromArray([2n ** 63n, 1n, 2n ** 64n - 1n, 2n ** 32n, null], new Uint64()).data[0];
  expect(order(single(longs), [{ column: 'x', descending: true }])).toEqual([2, 0, 3, 1, 4]);
  const halves = vectorFromArray([1, -2, Number.NaN, 0, -1, 0.5, Infinity, -Infinity], new Float16()).data[0];
  expect(order(single(halves), [{ column: 'x' }])).toEqual([7, 1, 4, 3, 5, 0, 6, 2]);
  const values = Uint32Array.from([5, 0, 0, 0, ~0, ~0, ~0, ~0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const decimals = makeData({ type: new Decimal(2, 18, 128), length: 4, data: values });
  expect(order(single(decimals), [{ column: 'x' }])).toEqual([1, 3, 0, 2]);
});

it('orders decimals of all widths', () => {
  const random53 = () => Math.floor((random() * 2 - 1) * 2 ** 53);
  for (const [width, precision] of [
    [32, 9],
    [64, 18],
    [128, 38],
    [256, 76],
  ] as const) {
    const bound = 10n ** BigInt(precision) - 1n;
    const values = Array.from({ length: 200 }, () => {
      const drawn = BigInt(random53()) ** (random() < 0.5 ? 1n : 3n) % bound;
      return random() < 0.2 ? drawn % 10n : drawn;
    });
    const words = values.flatMap((value) =>
      Array.from({ length: width / 32 }, (_, i) => Number((value >> BigInt(32 * i)) & 0xffffffffn)),
    );
    const type = new Decimal(2, precision, width);
    const data = makeData({ type, length: values.length, data: Uint32Array.from(words) });
    for (const descending of [false, true]) {
      const sign = descending ? -1 : 1;
      const sorted = [...values.keys()].sort(
        (a, b) => sign * (values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0) || a - b,
      );
      expect(order(single(data), [{ column: 'x', descending }]), `${width} bits`).toEqual(sorted);
    }
  }
});

it('orders dictionaries of several chunks with null entries, also of numbers', () => {
  const chunks = [vectorFromArray(['pear', null, 'fig'], new Utf8()), vectorFromArray(['apple'], new Utf8())];
  const dictionary = chunks[0].concat(chunks[1]);
  const type = new Dictionary(new Utf8(), new Int32());
  const nullBitmap = Uint8Array.of(0b011111);
  const texts = makeData({
    type,
    data: Int32Array.of(0, 3, 1, 2, 0, 9),
    nullBitmap,
    nullCount: 1,
    dictionary,
  });
  expect(order(single(texts), [{ column: 'x' }])).toEqual([2, 5, 1, 3, 0, 4]);
  expect(order(single(texts), [{ column: 'x', descending: true }])).toEqual([0, 4, 3, 1, 2, 5]);
  const floats = vectorFromArray([2.5, null, -1]);
  const numbers = makeData({
    type: new Dictionary(floats.type, new Int32()),
    data: Int32Array.of(0, 2, 1, 0),
    dictionary: floats,
  });
  expect(order(single(numbers), [{ column: 'x', nulls: 'last' }])).toEqual([1, 0, 3, 2]);
});

it('takes nulls in a field that is declared to have none as nulls', () => {
  const data = vectorFromArray([2, null, 1], new Int32()).data[0];
  const fields = [new Field('x', data.type, false)];
  const type = new Struct<TypeMap>(fields);
  const batch = new Batch(new Schema(fields), makeData({ type, length: 3, children: [data] }));
  expect(order(batch, [{ column: 'x' }])).toEqual([1, 2, 0]);
  expect(order(batch, [{ column: 'x', nulls: 'last' }])).toEqual([2, 0, 1]);
});

it('orders nulls alone, times, durations and bytes', () => {
  const sorted = (data: RecordBatch['data']['children'][number]) => order(single(data), [{ column: 'x' }]);
  expect(sorted(makeData({ type: new Null(), length: 3 }))).toEqual([0, 1, 2]);
  expect(sorted(makeData({ type: new TimeSecond(), data: Int32Array.of(5, -1, 3) }))).toEqual([1, 2, 0]);
  expect(sorted(makeData({ type: new DurationSecond(), data: BigInt64Array.of(5n, -1n, 3n) }))).toEqual([
    1, 2, 0,
  ]);
  const bytes = vectorFromArray([Uint8Array.of(200), Uint8Array.of(1, 2), Uint8Array.of(1)], new Binary());
  expect(sorted(bytes.data[0])).toEqual([2, 1, 0]);
});

it('orders many rows by bands, stably, with any share of equal keys', () => {
  const rows = 200_000;
  for (const distinct of [2, 300, 1e9]) {
    const [a, b] = [new Int32Array(rows), new Float64Array(rows)];
    for (let row = 0; row < rows; row++) {
      a[row] = random() < 0.4 ? 7 : (random() - 0.5) * distinct;
      b[row] = Math.floor(random() * distinct) / 8 - 5;
    }
    const batch = batchOf({
      a: makeData({ type: new Int32(), data: a }),
      b: makeData({ type: new Float64(), data: b }),
    });
    const sorted = Uint32Array.from({ length: rows }, (_, row) => row).sort(
      (x, y) => a[x] - a[y] || b[y] - b[x] || x - y,
    );
    const keys = [{ column: 'a' }, { column: 'b', descending: true }];
    expect(
      Buffer.compare(Buffer.from(sorted.buffer), Buffer.from(Uint32Array.from(order(batch, keys)).buffer)),
    ).toBe(0);
  }
});

it('orders many texts that begin with the same bytes', () => {
  const rows = 5000;
  const begins = ['user_00000', 'user_00000 and some more', 'user', ''];
  const drawText = () => begins[Math.floor(random() * 4)] + Math.floor(random() ** 3 * 2000);
  const texts = Array.from({ length: rows }, drawText);
  const more = Array.from({ length: rows }, drawText);
  const number = Int32Array.from({ length: rows }, () => Math.floor(random() * 3));
  const batch = batchOf({
    a: vectorFromArray(texts, new Dictionary(new Utf8(), new Int32())).data[0],
    n: makeData({ type: new Int32(), data: number }),
    b: vectorFromArray(more, new Utf8()).data[0],
  });
  const by = (x: string, y: string) => (x < y ? -1 : x > y ? 1 : 0);
  for (const descending of [false, true]) {
    const sign = descending ? -1 : 1;
    const sorted = [...texts.keys()].sort(
      (x, y) => sign * by(texts[x], texts[y]) || number[x] - number[y] || by(more[y], more[x]) || x - y,
    );
    const keys = [{ column: 'a', descending }, { column: 'n' }, { column: 'b', descending: true }];
    expect(order(batch, keys)).toEqual(sorted);
  }
});

it('names the column and type that it cannot sort by, and the columns that exist', () => {
  const list = vectorFromArray([[1], [2]]).data[0];
  expect(() => order(single(list), [{ column: 'x' }])).toThrow(
    /the rows cannot be sorted by the column "x" of type List/,
  );
  expect(() => order(single(list), [{ column: 'y' }])).toThrow(
    /there is no column "y" to sort by.*The columns are: x/s,
  );
});
