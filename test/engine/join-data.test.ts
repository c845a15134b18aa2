/** Chunks of a column as one, of all types. */
import {
  Binary,
  Bool,
  type Data,
  type DataType,
  Dictionary,
  Field,
  FixedSizeList,
  Float64,
  Int32,
  Int64,
  Int8,
  LargeUtf8,
  List,
  makeData,
  Null,
  Struct,
  TimestampMillisecond,
  type TypeMap,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import { joinData } from '../../engine/stream/join-data.ts';
import { takeData } from '../../engine/stream/take-data.ts';

const valuesOf = (data: Data): unknown[] =>
  Array.from(new Vector([data]), (value: unknown) => JSON.stringify(value, (_, own: unknown) => String(own)));

const list = new List(new Field('item', new Int32()));
const pair = new FixedSizeList(2, new Field('item', new Float64()));
const struct = new Struct<TypeMap>([new Field('a', new Int32()), new Field('b', new Utf8())]);
const cases: readonly (readonly [DataType, readonly unknown[]])[] = [
  [new Bool(), [true, null, false, true, true]],
  [new Int8(), [1, 2, null, -4]],
  [new Int64(), [1n, null, -(2n ** 60n)]],
  [new TimestampMillisecond(), [5, 1e12, null]],
  [new Utf8(), ['a', null, '', 'some longer text']],
  [new LargeUtf8(), ['a', null, '', 'some longer text']],
  [new Binary(), [Uint8Array.of(1, 2), null, Uint8Array.of()]],
  [list, [[1, 2], null, [], [3]]],
  [pair, [[1, 2], null, [3, 4]]],
  [new Dictionary(new Utf8(), new Int8()), ['a', 'b', null, 'a']],
  [new Null(), [null, null]],
];

it.each(cases)('joins and takes %s, also of slices', (type, values) => {
  const chunks = [values, [], values.toReversed()].map((own) => vectorFromArray(own, type).data[0]);
  const parts = [chunks[0], chunks[0].slice(1, 2), ...chunks.slice(1), chunks[2].slice(1, 1)].filter(Boolean);
  const joined = joinData(parts[0].type, parts);
  const all = parts.flatMap(valuesOf);
  expect(valuesOf(joined)).toEqual(all);
  expect(joined.nullCount).toBe(all.filter((value) => value === 'null' || value === '"null"').length);
  const positions = Uint32Array.from({ length: 20 }, (_, i) => (i * 7) % all.length);
  expect(valuesOf(takeData(joined, positions))).toEqual(Array.from(positions, (row) => all[row]));
});

it('joins structs', () => {
  const made = (a: number[], b: string[]) =>
    makeData({
      type: struct,
      length: a.length,
      children: [vectorFromArray(a, new Int32()).data[0], vectorFromArray(b, new Utf8()).data[0]],
    });
  const parts = [made([1, 2], ['x', 'y']), made([3, 4, 5], ['u', 'v', 'w']).slice(1, 2)];
  expect(valuesOf(joinData(parts[0].type, parts))).toEqual(parts.flatMap(valuesOf));
});

it('joins dictionaries that differ, with each value once', () => {
  const type = new Dictionary(new Utf8(), new Int8());
  const words = (from: number) => Array.from({ length: 100 }, (_, i) => `word ${from + i}`);
  const parts = [words(0), [null, 'word 5', 'other'], words(10)].map(
    (own) => vectorFromArray(own, type).data[0],
  );
  const joined = joinData(parts[0].type, parts);
  expect(valuesOf(joined)).toEqual(parts.flatMap(valuesOf));
  expect(joined.dictionary?.length).toBe(111);
  const more = vectorFromArray(words(200), type).data[0];
  expect(() => joinData(more.type, [...parts, more])).toThrow(
    /211 values together, too many for codes of 8 bits/,
  );
});

it('keeps the dictionary that all chunks share', () => {
  const data = vectorFromArray(['a', 'b'], new Dictionary(new Utf8(), new Int32())).data[0];
  expect(joinData(data.type, [data, data.slice(1, 1)]).dictionary).toBe(data.dictionary);
});
