import {
  Bool,
  type DataType,
  Field,
  Float32,
  Int16,
  Int64,
  List,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
  Utf8,
  makeData,
  vectorFromArray,
} from 'apache-arrow';
import { expect, test } from 'vitest';
import { isIpc, isPackable, PackedRows, unpackedRows } from '../../../engine/stream/packed-rows.ts';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';

const ROWS = 1000;
const values: Readonly<Record<string, readonly [DataType, (row: number) => unknown]>> = {
  small: [new Int16(), (row) => row - 500],
  wide: [new Int64(), (row) => BigInt(row) << 40n],
  single: [new Float32(), (row) => row / 4],
  flag: [new Bool(), (row) => row % 3 === 0],
  text: [new Utf8(), (row) => 'é'.repeat(row % 7)],
  'null text': [new Utf8(), (row) => (row % 5 === 0 ? null : `t${row}`)],
  'null number': [new Float32(), (row) => (row % 11 === 0 ? null : row)],
  'null flag': [new Bool(), (row) => (row % 2 === 0 ? null : row % 4 === 1)],
};
const names = Object.keys(values);
const schema = new Schema(names.map((name) => new Field(name, values[name][0], true)));
const columns = names.map((name) => {
  const [type, valueOf] = values[name];
  return vectorFromArray(
    Array.from({ length: ROWS }, (_, row) => valueOf(row)),
    type,
  ).data[0];
});

/** Pieces that start and end within bytes of bitmaps. */
const pieces = [
  [3, 10],
  [10, 11],
  [17, 500],
  [501, ROWS],
];

function packed(): Uint8Array {
  const rows = new PackedRows(schema);
  for (const [from, to] of pieces)
    rows.add(
      to - from,
      columns.map((column) => column.slice(from, to - from)),
    );
  const bytes = new Uint8Array(16 + rows.finish());
  rows.takeInto(bytes, 16);
  return bytes.subarray(16);
}

const rowsOf = (batches: Iterable<RecordBatch>) =>
  [...batches].flatMap((batch) => batch.toArray().map((row) => ({ ...row?.toJSON() })));

test('packed rows are the rows that were added', () => {
  const bytes = packed();
  expect(isIpc(bytes)).toBe(false);
  const expected = pieces.flatMap(([from, to]) =>
    Array.from({ length: to - from }, (_, i) =>
      Object.fromEntries(names.map((name) => [name, values[name][1](from + i)])),
    ),
  );
  expect(rowsOf(unpackedRows(bytes, schema))).toEqual(expected);
});

test('packed rows may be at any place in memory, as after they were in a file', () => {
  const bytes = packed();
  const moved = new Uint8Array(bytes.length + 3);
  moved.set(bytes, 3);
  expect(rowsOf(unpackedRows(moved.subarray(3), schema))).toEqual(rowsOf(unpackedRows(bytes, schema)));
});

test('rows of more than a batch are several batches', () => {
  const rows = new PackedRows(schema);
  for (let i = 0; i < 70; i++) rows.add(ROWS, columns);
  const bytes = new Uint8Array(rows.finish());
  rows.takeInto(bytes, 0);
  const found = [...unpackedRows(bytes, schema)];
  expect(found.length).toBe(3);
  expect(found.reduce((sum, { numRows }) => sum + numRows, 0)).toBe(70 * ROWS);
  expect(rowsOf(found.slice(-1)).at(-1)).toEqual(rowsOf([wholeBatch()]).at(-1));
});

test('lists are not packed, and an Arrow stream is recognized', () => {
  expect(isPackable(schema)).toBe(true);
  expect(isPackable(new Schema([new Field('l', new List(new Field('item', new Utf8())), true)]))).toBe(false);
  const stream = new RowStream(schema, false);
  stream.add(wholeBatch());
  expect(isIpc(stream.takeShared())).toBe(true);
});

function wholeBatch(): RecordBatch {
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length: ROWS, nullCount: 0, children: columns }));
}
