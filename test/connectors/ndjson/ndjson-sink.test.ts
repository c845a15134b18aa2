import {
  Bool,
  type DataType,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { NdjsonSource } from '../../../connectors/ndjson/ndjson-source.ts';
import { readTable } from '../text/text-testing.ts';
import { folder, write } from './ndjson-testing.ts';

function table(
  columns: readonly (readonly [name: string, type: DataType, values: readonly unknown[]])[],
): RecordBatch {
  const schema = new Schema(columns.map(([name, type]) => new Field(name, type, true)));
  const children = columns.map(
    ([, type, values]) =>
      vectorFromArray(values, type).data[0] ?? makeData({ type: type as Int32, length: 0 }),
  );
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: columns[0][2].length, nullCount: 0, children }),
  );
}

describe('what is written', () => {
  const batch = table([
    ['user', new Int64(), [9007199254740993n, 2n, null]],
    ['item', new Utf8(), ['a "b"\n', '', null]],
    ['rating', new Float32(), [0.1, 4, null]],
    ['flag', new Bool(), [true, false, null]],
  ]);
  const text =
    '{"user":9007199254740993,"item":"a \\"b\\"\\n","rating":0.1,"flag":true}\n{"user":2,"item":"","rating":4.0,"flag":false}\n{"user":null,"item":null,"rating":null,"flag":null}\n';

  test('an object a line, packed by the ending', async () => {
    expect((await write('plain.ndjson', [batch])).toString()).toBe(text);
    expect(gunzipSync(await write('packed.jsonl.gz', [batch])).toString()).toBe(text);
    for (const ending of ['.gz', '.lz4', ...(hasZstd() ? ['.zst'] : [])]) {
      await write(`packed.ndjson${ending}`, [batch, batch]);
      expect((await readTable(new NdjsonSource(join(folder, `packed.ndjson${ending}`)))).rows).toHaveLength(
        6,
      );
    }
  });

  test('NaN and infinities, which JSON lacks, become null', async () => {
    expect(
      (
        await write('special.ndjson', [
          table([['x', new Float64(), [Number.NaN, Number.POSITIVE_INFINITY, 1]]]),
        ])
      ).toString(),
    ).toBe('{"x":null}\n{"x":null}\n{"x":1.0}\n');
  });

  test('any cells come back, in numbers of every kind', async () => {
    const cells = fc.array(
      fc.record({
        int: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { nil: null }),
        long: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { nil: null }),
        text: fc.option(
          fc.string({
            unit: fc.constantFrom('a', 'é', '😀', '\0', '"', '\\', '\n', '\u2028', '{', ','),
            maxLength: 9,
          }),
          { nil: null },
        ),
        double: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: null }),
        flag: fc.option(fc.boolean(), { nil: null }),
      }),
      { minLength: 1, maxLength: 30 },
    );
    const types = { int: 'int32', long: 'int64', text: 'utf8', double: 'float64', flag: 'bool' } as const;
    await fc.assert(
      fc.asyncProperty(cells, async (rows) => {
        const column = (name: keyof (typeof rows)[0], type: DataType) =>
          [name, type, rows.map((row) => row[name])] as const;
        await write('any.ndjson', [
          table([
            column('int', new Int32()),
            column('long', new Int64()),
            column('text', new Utf8()),
            column('double', new Float64()),
            column('flag', new Bool()),
          ]),
        ]);
        expect((await readTable(new NdjsonSource(join(folder, 'any.ndjson'), { types }))).rows).toEqual(
          rows.map((row) => Object.values(row)),
        );
      }),
      { numRuns: 100, seed: 33 },
    );
  });
});
