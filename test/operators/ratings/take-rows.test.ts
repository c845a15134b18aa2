import {
  Bool,
  Data,
  type DataType,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float64,
  Int32,
  Int64,
  Int8,
  LargeUtf8,
  List,
  makeData,
  Null,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampNanosecond,
  Utf8,
  Utf8View,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { takeRows } from '../../../operators/dataflow/row-operator.ts';
import { collect, context, duckRows, streamOf } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { writeParquet } from '../../cli/run-cli.ts';
import { testRandom } from '../../support/ratings.ts';

const rows = 100;
const folder = temporaryFolder();

const some = <T>(make: (row: number) => T) =>
  Array.from({ length: rows }, (_, row) => (row % 3 === 0 ? null : make(row)));
const made = (type: DataType, make: (row: number) => unknown) => vectorFromArray(some(make), type) as Vector;
const list = (type: DataType) => new List(new Field('item', type, true));
const struct = new Struct([new Field('a', new Int32(), true), new Field('b', list(new Utf8()), true)]);
const words = new Uint32Array(4 * rows).map((_, i) => i * 40503);

const columns: Readonly<Record<string, Vector>> = {
  int32: made(new Int32(), (row) => row),
  int64: made(new Int64(), (row) => 2n ** 60n + BigInt(row)),
  float64: made(new Float64(), (row) => row / 7),
  bool: made(new Bool(), (row) => row % 5 < 2),
  utf8: made(new Utf8(), (row) => '\u{1F600}'.repeat(row % 4)),
  'large utf8': made(new LargeUtf8(), (row) => `x${row}`),
  dictionary: made(new Dictionary(new Utf8(), new Int32()), (row) => `x${row % 7}`),
  'fixed binary': made(new FixedSizeBinary(3), (row) => Uint8Array.of(row, 1, 2)),
  decimal: new Vector([makeData({ type: new Decimal(4, 38, 128), length: rows, nullCount: 0, data: words })]),
  list: made(list(new Int32()), (row) =>
    Array.from({ length: row % 4 }, (_, i) => (i === 1 ? null : row + i)),
  ),
  'list of lists': made(list(list(new Utf8())), (row) => [[`${row}`], [], [`a${row}`, 'b']]),
  'fixed list': made(new FixedSizeList(2, new Field('item', new Float64(), true)), (row) => [row, row + 0.5]),
  struct: made(struct, (row) => ({ a: row % 2 ? row : null, b: [`${row}`] })),
  views: new Vector([viewsOf(some((row) => 'abcdefghijkl'.slice(row % 12) + 'z'.repeat(row % 20)))]),
  null: made(new Null(), () => null),
};

/** Texts as views: those beyond twelve bytes have a buffer each. */
function viewsOf(texts: readonly (string | null)[]): Data {
  const bytes = new Uint8Array(16 * texts.length);
  const words = new Int32Array(bytes.buffer);
  const variadicBuffers: Uint8Array[] = [];
  const valid = new Uint8Array(Math.ceil(texts.length / 64) * 8);
  for (const [row, value] of texts.entries()) {
    if (value === null) continue;
    valid[row >> 3] |= 1 << (row & 7);
    const own = new TextEncoder().encode(value);
    words[4 * row] = own.length;
    bytes.set(own.subarray(0, own.length > 12 ? 4 : 12), 16 * row + 4);
    if (own.length > 12) words[4 * row + 2] = variadicBuffers.push(own) - 1;
  }
  const buffers = { 1: bytes, 2: valid };
  return new Data(new Utf8View(), 0, texts.length, -1, buffers as never, [], undefined, variadicBuffers);
}

const text = (value: unknown) =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part));

describe('rows are taken with all their values', () => {
  it.each(Object.keys(columns))('%s', (name) => {
    const whole = new Table({ column: columns[name] }).batches[0];
    for (const [from, to] of [
      [0, rows],
      [1, 2],
      [13, 90],
    ]) {
      const batch = whole.slice(from, to);
      const random = testRandom(from + 1);
      const positions = Uint32Array.from({ length: 3 * (to - from) }, () =>
        Math.floor(random() * (to - from)),
      );
      const taken = takeRows(batch, positions);
      expect(taken.numRows).toBe(positions.length);
      const [before, after] = [columns[name], taken.getChildAt(0) as Vector];
      expect(String(after.type)).toBe(String(before.type));
      for (const [i, position] of positions.entries())
        expect(text(after.get(i))).toBe(text(before.get(from + position)));
    }
  });

  it.each(Object.keys(columns))('%s, of several batches with nulls after them', (name) => {
    const { type, data } = columns[name];
    const cuts = [
      [0, 13],
      [13, 14],
      [40, 40],
      [21, 90],
      [8, 24],
    ];
    const parts = cuts.map(([from, to]) => data[0].slice(from, to - from));
    const positions = cuts.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
    for (const nulls of [0, 1, 9]) {
      const all = new Vector([joinData(type, parts, nulls)]);
      expect(all).toHaveLength(positions.length + nulls);
      expect(String(all.type)).toBe(String(type));
      expect(all.nullCount).toBe(positions.filter((row) => columns[name].get(row) === null).length + nulls);
      for (const [i, position] of positions.entries())
        expect(text(all.get(i))).toBe(text(columns[name].get(position)));
      for (let i = positions.length; i < all.length; i++) expect(all.get(i)).toBe(null);
    }
    const none = new Vector([joinData(type, [data[0].slice(0, 0), data[0].slice(7, 0)], 2)]);
    expect([...none]).toEqual([null, null]);
  });

  it('of batches whose dictionaries differ', () => {
    const type = new Dictionary(new Utf8(), new Int8());
    const words = Array.from({ length: 100 }, (_, i) => `w${i}`);
    const [first] = vectorFromArray(['b', 'a', null], type).data;
    const [second] = vectorFromArray(['c', 'a', ''], type).data;
    const joined = new Vector([joinData(type, [first, second, first.slice(1, 1)], 1)]);
    expect([...joined]).toEqual(['b', 'a', null, 'c', 'a', '', 'a', null]);
    const [many] = vectorFromArray(words, type).data;
    const [others] = vectorFromArray(words, type).data;
    expect(new Vector([joinData(type, [many, others])]).get(150)).toBe('w50');
    const [more] = vectorFromArray(
      words.map((word) => `${word}${word}`),
      type,
    ).data;
    expect(() => joinData(type, [many, more])).toThrow(
      /have 200 values together, too many for codes of 8 bits/,
    );
  });

  it('to the nanosecond', () => {
    const times = BigInt64Array.of(1_600_000_000_123_456_789n, -1n, 7n);
    const data = makeData({
      type: new TimestampNanosecond(),
      length: 3,
      nullCount: 1,
      nullBitmap: Uint8Array.of(0b101),
      data: times,
    });
    const schema = new Schema([new Field('t', data.type, true)]);
    const taken = takeRows(
      new RecordBatch(
        schema,
        makeData({ type: new Struct(schema.fields), length: 3, nullCount: 0, children: [data] }),
      ),
      Uint32Array.of(2, 0, 1),
    );
    expect([...(taken.data.children[0].values as BigInt64Array)].slice(0, 2)).toEqual([7n, times[0]]);
    expect(taken.data.children[0].nullCount).toBe(1);
  });

  it('and through Parquet, as DuckDB sees them', async () => {
    const nullable = (sql: string, name: string) =>
      `CASE WHEN i % 3 = 0 THEN NULL ELSE ${sql} END AS ${name}`;
    const types = [
      "TIMESTAMP '2020-01-01 00:00:00.123456' + to_microseconds(i)",
      'make_timestamp_ns(1600000000123456789 + i)',
      "DATE '2020-01-01' + i::INT",
      "TIME '12:34:56.789012'",
      '(i * 1.37)::DECIMAL(18, 4)',
      '(i * 1.37)::DECIMAL(38, 10)',
      '[i, i + 1, NULL]',
      "{'a': i, 'b': 'q' || i}",
      "('x' || i)::BLOB",
      'i % 2 = 1',
    ];
    const given = await writeParquet(
      join(folder, 'given.parquet'),
      `SELECT i::INT AS id, ${types.map((sql, n) => nullable(sql, `c${n}`)).join(', ')} FROM range(${rows}) t(i)`,
    );
    const stream = await new ParquetSource(given).execute(context());
    const taken = (await collect(stream)).map((batch) =>
      takeRows(
        batch,
        Uint32Array.from({ length: batch.numRows / 2 }, (_, i) => 2 * i + 1),
      ),
    );
    const written = join(folder, 'taken.parquet');
    await new ParquetSink(written).consume(streamOf(stream.schema, taken), {
      ...context(),
      events: () => {},
    });
    const differing = types
      .map((_, n) => `(count(*) FILTER (a.c${n} IS DISTINCT FROM b.c${n}))::INT`)
      .join(', ');
    expect(
      await duckRows(`SELECT count(*)::INT, ${differing} FROM '${given}' a JOIN '${written}' b USING (id)`),
    ).toEqual([[rows / 2, ...types.map(() => 0)]]);
  });
});
