import {
  CompressionType,
  compressionRegistry,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  LargeUtf8,
  List,
  RecordBatch,
  Utf8,
} from 'apache-arrow';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ArrowSink } from '../../../connectors/arrow/arrow-sink.ts';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { DataError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { isDeep } from '../../support/deep.ts';
import { arrowRows, context, goldenFiles, goldenFolder, plain } from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';
import { encode, folder, ratings, table, write } from './arrow-testing.ts';

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
    for (let length = 0; length < whole.length; length += isDeep ? 97 : 197) {
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
