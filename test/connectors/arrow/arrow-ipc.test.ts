import {
  Bool,
  CompressionType,
  compressionRegistry,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  Int64,
  LargeUtf8,
  List,
  makeData,
  Null,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { DataType } from 'apache-arrow';
import fc from 'fast-check';
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ArrowSink } from '../../../connectors/arrow/arrow-sink.ts';
import type { ArrowSinkOptions } from '../../../connectors/arrow/arrow-sink.ts';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import {
  arrowRows,
  context,
  goldenFiles,
  goldenFolder,
  temporaryFolder,
  plain,
} from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';

const folder = temporaryFolder();

function table(
  columns: readonly (readonly [name: string, type: DataType, values: readonly unknown[]])[],
): RecordBatch {
  const children = columns.map(
    ([, type, values]) =>
      vectorFromArray(values, type).data[0] ?? makeData({ type: type as Int32, length: 0 }),
  );
  const schema = new Schema(columns.map(([name], index) => new Field(name, children[index].type, true)));
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: columns[0][2].length, nullCount: 0, children }),
  );
}

const ratings = (rows: number, from = 0) =>
  table([
    ['user', new Int32(), Array.from({ length: rows }, (_, i) => from + i)],
    ['item', new Utf8(), Array.from({ length: rows }, (_, i) => (i % 5 === 0 ? null : `item ${from + i}`))],
    ['rating', new Float32(), Array.from({ length: rows }, (_, i) => (i % 10) / 2)],
  ]);

function write(file: string, batches: readonly RecordBatch[], options: ArrowSinkOptions = {}) {
  const all = (async function* () {
    yield* batches;
  })();
  return new ArrowSink(file, { overwrite: true, ...options }).consume(
    batchStream(batches[0].schema, all),
    context(),
  );
}

/** Batches in the encoding of another program, by apache-arrow's own writer. */
function encode(
  batches: readonly RecordBatch[],
  format: 'file' | 'stream' = 'stream',
  options: ConstructorParameters<typeof RecordBatchStreamWriter>[0] = undefined,
): Uint8Array {
  const writer =
    format === 'file' ? new RecordBatchFileWriter(options) : new RecordBatchStreamWriter(options);
  for (const batch of batches) writer.write(batch);
  return writer.finish().toUint8Array(true);
}

const readFails = async (name: string, content: Uint8Array, pattern: RegExp) => {
  const file = join(folder, name);
  writeFileSync(file, content);
  const error = await readTable(new ArrowSource(file)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
  expect(String(error)).toContain(file);
};

describe.each(['file', 'stream'] as const)('%s format', (format) => {
  test('what is written is read, slices and empty batches too', async () => {
    const file = join(folder, `written-${format}.arrow`);
    const batches = [ratings(100), ratings(0), ratings(50, 100).slice(7, 31), ratings(20, 500)];
    const { rows, bytes } = await write(file, batches, { format });
    expect(rows).toBe(144);
    expect(bytes).toBe(readFileSync(file).length);
    const read = await readTable(new ArrowSource(file));
    expect(read.columns).toEqual(['user:Int32', 'item:Utf8', 'rating:Float32']);
    expect(read.rows).toEqual(arrowRows(batches));
    expect((await readTable(new ArrowSource(file), ['rating'])).rows).toEqual(
      arrowRows(batches).map((row) => [row[2]]),
    );
  });

  test('no batches at all', async () => {
    const file = join(folder, `none-${format}.arrow`);
    const none = (async function* (): AsyncGenerator<RecordBatch> {})();
    await new ArrowSink(file, { format }).consume(batchStream(ratings(1).schema, none), context());
    expect(await readTable(new ArrowSource(file))).toEqual({
      columns: ['user:Int32', 'item:Utf8', 'rating:Float32'],
      rows: [],
    });
  });

  test('cut off anywhere: an error, which names the batch in a stream, or the batches before in a stream', async () => {
    const file = join(folder, `cut-${format}.arrow`);
    await write(file, [ratings(100), ratings(100, 100)], { format });
    const whole = readFileSync(file);
    const messages = new Set<string>();
    for (let length = 0; length < whole.length; length += 97) {
      writeFileSync(file, whole);
      truncateSync(file, length);
      const result = await readTable(new ArrowSource(file)).then(
        ({ rows }) => rows.length,
        (error: unknown) => error,
      );
      if (typeof result === 'number') {
        expect(format).toBe('stream');
        expect([100, 200]).toContain(result);
      } else {
        expect(result).toBeInstanceOf(DataError);
        messages.add(
          String(result)
            .replaceAll(/\d+ bytes/g, 'N bytes')
            .replace(/ \(.*/, ''),
        );
      }
    }
    const inStream = [
      'DataError: read: batch 0: the data end in its middle',
      'DataError: read: batch 1: the data end in its middle',
    ];
    expect([...messages]).toEqual(
      expect.arrayContaining(
        format === 'stream' ? inStream : ['DataError: read: the Arrow file is cut off: its end is missing'],
      ),
    );
  });
});

describe('any cells come back', () => {
  const cells = fc.array(
    fc.record({
      int: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { nil: null }),
      long: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { nil: null }),
      text: fc.option(fc.string({ unit: fc.constantFrom('a', 'é', '😀', '\0'), maxLength: 9 }), {
        nil: null,
      }),
      double: fc.option(fc.double(), { nil: null }),
      flag: fc.option(fc.boolean(), { nil: null }),
    }),
    { minLength: 1, maxLength: 30 },
  );
  test.each(['file', 'stream'] as const)('%s', async (format) => {
    const file = join(folder, `any-${format}.arrow`);
    await fc.assert(
      fc.asyncProperty(cells, fc.nat(29), async (rows, cut) => {
        const column = (name: keyof (typeof rows)[0], type: DataType) =>
          [name, type, rows.map((row) => row[name])] as const;
        const batch = table([
          column('int', new Int32()),
          column('long', new Int64()),
          column('text', new Utf8()),
          column('double', new Float64()),
          column('flag', new Bool()),
        ]);
        await write(file, [batch.slice(0, cut), batch.slice(cut)], { format });
        expect((await readTable(new ArrowSource(file))).rows).toEqual(rows.map((row) => Object.values(row)));
      }),
      { numRuns: 60, seed: 21 },
    );
  });
});

describe('other writers', () => {
  test('dictionaries and 64-bit offsets become plain text', async () => {
    const file = join(folder, 'odd.arrow');
    const batch = table([
      ['a', new Dictionary(new Utf8(), new Int32()), ['x', 'y', null, 'x']],
      ['b', new LargeUtf8(), ['1', null, '', '4']],
    ]);
    writeFileSync(file, encode([batch, batch]));
    const once = [
      ['x', '1'],
      ['y', null],
      [null, ''],
      ['x', '4'],
    ];
    expect(await readTable(new ArrowSource(file))).toEqual({
      columns: ['a:Utf8', 'b:Utf8'],
      rows: [...once, ...once],
    });
    // This file has its schema and dictionaries in the footer alone.
    writeFileSync(file, encode([batch, batch], 'file'));
    expect(await readTable(new ArrowSource(file))).toEqual({
      columns: ['a:Utf8', 'b:Utf8'],
      rows: [...once, ...once],
    });
  });

  test('lists', async () => {
    const file = join(folder, 'lists.arrow');
    const batch = table([
      ['l', new List(new Field('element', new Float32(), true)), [[1, 2], [], null, [3]]],
      ['f', new FixedSizeList(2, new Field('element', new Int32(), true)), [[1, 2], [3, 4], null, [5, 6]]],
    ]);
    writeFileSync(file, encode([batch], 'file'));
    expect((await readTable(new ArrowSource(file))).rows.map((row) => row.map(plain))).toEqual([
      [
        [1, 2],
        [1, 2],
      ],
      [[], [3, 4]],
      [null, null],
      [[3], [5, 6]],
    ]);
  });

  test.each([
    ['zstd', CompressionType.ZSTD],
    ['lz4', CompressionType.LZ4_FRAME],
  ] as const)('buffers that are packed by %s', async (name, compressionType) => {
    const file = join(folder, `${name}.arrow`);
    // The first read registers the codecs, which apache-arrow's writer needs too.
    await readTable(new ArrowSource(join(folder, 'odd.arrow')));
    if (compressionRegistry.get(compressionType) === null) {
      expect({ name, hasZstd: hasZstd() }).toEqual({ name: 'zstd', hasZstd: false });
      return;
    }
    for (const format of ['stream', 'file'] as const) {
      writeFileSync(file, encode([ratings(1000), ratings(3)], format, { compressionType }));
      expect((await readTable(new ArrowSource(file))).rows).toEqual(arrowRows([ratings(1000), ratings(3)]));
    }
  });

  test('Parquet to Arrow and back', async () => {
    for (const name of goldenFiles.filter((golden) =>
      /ratings-zstd|list-features|unsigned|special-floats/.test(golden),
    )) {
      const source = new ParquetSource(join(goldenFolder, name));
      const arrow = join(folder, `${name}.arrow`);
      const parquet = join(folder, `${name}-again.parquet`);
      await new ArrowSink(arrow).consume(await source.execute(context()), context());
      await new ParquetSink(parquet).consume(await new ArrowSource(arrow).execute(context()), context());
      const rows = async (each: ParquetSource | ArrowSource) =>
        (await readTable(each)).rows.map((row) => row.map(plain));
      expect(await rows(new ArrowSource(arrow))).toEqual(await rows(source));
      expect(await rows(new ParquetSource(parquet))).toEqual(await rows(source));
    }
  });
});

describe('bad input', () => {
  test('data that are not Arrow', async () => {
    await readFails('empty.arrow', new Uint8Array(0), /there are no Arrow data: 0 bytes/);
    await readFails(
      'text.arrow',
      Buffer.from('user,item,rating\n1,2,3\n'),
      /not Arrow IPC data of version 0\.15 or newer/,
    );
    await readFails('mark.arrow', Buffer.from('ARROW1\0\0'), /cut off: its end is missing/);
    await readFails('end.arrow', Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]), /have no schema/);
    await readFails(
      'long.arrow',
      Buffer.from([255, 255, 255, 255, 255, 255, 255, 127, 1, 2, 3]),
      /the schema: the data end in its middle/,
    );
    await readFails(
      'noise.arrow',
      Buffer.from([255, 255, 255, 255, 8, 0, 0, 0, 255, 255, 0, 0, 1, 2, 3, 4]),
      /the schema: the metadata are damaged: it points to/,
    );
  });

  test('a batch before its schema, two schemas, a file without its end', async () => {
    const one = encode([ratings(10)]);
    const schemaLength = 8 + Buffer.from(one).readInt32LE(4);
    await readFails('headless.arrow', one.slice(schemaLength), /a batch comes before the schema/);
    await readFails(
      'twice.arrow',
      Buffer.concat([one.slice(0, -8), one]),
      /batch 1: a second schema follows/,
    );
    await readFails(
      'footless.arrow',
      encode([ratings(10)], 'file').subarray(0, -1),
      /the Arrow file is cut off: its end is missing/,
    );
    await write(join(folder, 'whole.arrow'), [ratings(10)]);
    await readFails(
      'endless.arrow',
      readFileSync(join(folder, 'whole.arrow')).subarray(0, -6),
      /cut off: its end is missing/,
    );
  });

  test('columns of no kind that is known, and of one name', async () => {
    await readFails(
      'null.arrow',
      encode([table([['n', new Null(), [null, null]]])]),
      /is of type Null, which cannot be read.*column "n"/,
    );
    const twice = table([
      ['a', new Int32(), [1]],
      ['a', new Int32(), [2]],
    ]);
    await readFails('names.arrow', encode([twice]), /two columns have the same name/);
  });

  test('a folder with other schemas names the files', async () => {
    const path = join(folder, 'mixed');
    mkdirSync(path);
    await write(join(path, 'a.arrow'), [ratings(5)]);
    await write(join(path, 'b.arrow'), [ratings(5).select(['user', 'item'])]);
    await expect(readTable(new ArrowSource(path))).rejects.toThrow(
      /has no column "rating", which .*a\.arrow has \(.*b\.arrow/,
    );
  });

  test('output that is there, and nothing left of what failed', async () => {
    const file = join(folder, 'there.arrow');
    writeFileSync(file, 'mine');
    await expect(write(file, [ratings(1)], { overwrite: false })).rejects.toThrow(UsageError);
    const failing = async function* () {
      yield ratings(10);
      throw new Error('pulled the plug');
    };
    await expect(
      new ArrowSink(file, { overwrite: true }).consume(batchStream(ratings(1).schema, failing()), context()),
    ).rejects.toThrow(/plug/);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});
