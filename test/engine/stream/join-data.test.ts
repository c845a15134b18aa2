import {
  Bool,
  type Data,
  type DataType,
  Decimal,
  Dictionary,
  Field,
  FixedSizeList,
  Float64,
  Int32,
  Int64,
  List,
  Null,
  Struct,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import { joinData } from '../../../engine/stream/join-data.ts';
import { random } from '../../connectors/parquet/parquet-testing.ts';

const below = random(3);

function plainText(data: Data): string {
  return JSON.stringify(new Vector([data]).toJSON(), (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
}
const text = (i: number) => 'é'.repeat(i % 4);
const struct = new Struct([new Field('a', new Int32(), true), new Field('b', new Utf8(), true)]);

it.each<[string, DataType, (i: number) => unknown]>([
  ['int32', new Int32(), (i) => i],
  ['int64', new Int64(), (i) => 2n ** 60n + BigInt(i)],
  ['float64', new Float64(), (i) => i / 8],
  ['bool', new Bool(), (i) => i % 3 === 0],
  ['utf8', new Utf8(), text],
  ['null', new Null(), () => null],
  ['decimal', new Decimal(2, 20, 128), (i) => new Uint32Array([i, 0, 0, 0])],
  [
    'list',
    new List(new Field('item', new Utf8(), true)),
    (i) => Array.from({ length: i % 4 }, () => text(i)),
  ],
  ['pairs', new FixedSizeList(2, new Field('item', new Int32(), true)), (i) => [i, i + 1]],
  ['struct', struct, (i) => ({ a: i, b: i % 2 ? null : text(i) })],
  ['dictionary', new Dictionary(new Utf8(), new Int32()), text],
])('columns of type %s follow each other, slices too, with and without nulls', (_, type, valueOf) => {
  for (const nulls of [0, 3]) {
    const values = Array.from({ length: 400 }, (_, i) =>
      nulls > 0 && below(nulls) === 0 ? null : valueOf(i),
    );
    const { data } = vectorFromArray(values, type);
    const cuts = [0, 1, 1, 9, 72, 200, 333, 400];
    const chunks = cuts.slice(1).map((end, i) => data[0].slice(cuts[i], end - cuts[i]));
    const all = joinData(type, chunks);
    expect(all.length).toBe(400);
    expect(plainText(all)).toBe(plainText(data[0]));
    expect(all.nullCount).toBe(data[0].nullCount);
  }
});
