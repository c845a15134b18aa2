import {
  Field,
  Int32,
  makeData,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  Table,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import { readColumnIndex, readOffsetIndex } from 'hyparquet/src/indexes.js';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSink } from '../../../connectors/open-sink.ts';
import { FileAssembly } from '../../../connectors/parquet/write/file-assembly.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { context, duckRows, streamOf } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const leftovers = () => readdirSync(folder).filter((name) => name.startsWith('.'));

const session = await cpuSession();

const ROWS = 30_000;
function rows(from: number, to: number): RecordBatch {
  const index = Array.from({ length: to - from }, (_, i) => i + from);
  return new Table({
    user: makeVector(Int32Array.from(index, (i) => i % 997)),
    item: makeVector(BigInt64Array.from(index, (i) => BigInt(i) * 3n)),
    rating: makeVector(Float32Array.from(index, (i) => (i % 10) / 2)),
    word: vectorFromArray(
      index.map((i) => (i % 7 === 0 ? null : `word ${i % 101}`)),
      new Utf8(),
    ),
  }).batches[0];
}

/** Batches of several sizes, so that row groups begin inside of them. */
function batches(): RecordBatch[] {
  const cuts = [0, 9000, 9001, 17_000, 26_500, ROWS];
  return cuts.slice(1).map((to, i) => rows(cuts[i], to));
}

const formats = {
  'rows.parquet': { rowGroupSize: 7000 },
  rows: { rowGroupSize: 5000, rowsPerPart: 12_000 },
  'rows.csv': {},
  'rows.tsv.gz': {},
  'rows.ndjson': {},
  'rows.arrow': {},
} as const;

function bytesOf(name: string): Buffer {
  if (!readdirSync(folder).includes(name)) throw new Error(`no ${name}`);
  const parts = name.includes('.')
    ? [path(name)]
    : readdirSync(path(name))
        .sort()
        .map((part) => join(path(name), part));
  return Buffer.concat(parts.map((part) => readFileSync(part)));
}

describe('threads write the same bytes as none', () => {
  test.each(Object.entries(formats))('%s', async (name, options) => {
    const written: Buffer[] = [];
    for (const ctx of [context(), session.context()]) {
      const sink =
        'rowGroupSize' in options
          ? new ParquetSink(path(name), { overwrite: true, ...options })
          : await openSink(path(name), { overwrite: true });
      expect(await sink.consume(streamOf(batches()[0].schema, batches()), ctx as never)).toMatchObject({
        rows: ROWS,
      });
      written.push(bytesOf(name));
    }
    expect(written[1].equals(written[0])).toBe(true);
  });

  test('and DuckDB reads them', async () => {
    for (const name of ['rows.parquet', 'rows/*.parquet']) {
      expect(
        await duckRows(
          `SELECT count(*), sum("user")::DOUBLE, sum(item)::DOUBLE, sum(rating), count(word), max(word) FROM '${path(name)}'`,
        ),
      ).toEqual([[BigInt(ROWS), 14_899_185, 1_349_955_000, 67_500, 25_714n, 'word 99']]);
    }
    expect(
      await duckRows(
        `SELECT item FROM '${path('rows.parquet')}' WHERE item BETWEEN 20997 AND 21003 ORDER BY item`,
      ),
    ).toEqual([[20_997n], [21_000n], [21_003n]]);
  });
});

test('footers and page indexes of a file of several row groups lead to its pages', () => {
  const file = readFileSync(path('rows.parquet'));
  const { buffer, byteOffset, length } = file;
  const {
    row_groups: groups,
    num_rows: count,
    schema,
  } = parquetMetadata(buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer);
  expect(Number(count)).toBe(ROWS);
  expect(groups.map(({ num_rows, ordinal }) => [Number(num_rows), ordinal])).toEqual([
    [7000, 0],
    [7000, 1],
    [7000, 2],
    [7000, 3],
    [2000, 4],
  ]);
  let before = 4;
  for (const { columns } of groups) {
    for (const [column, chunk] of columns.entries()) {
      const metadata = chunk.meta_data!;
      const start = Number(metadata.dictionary_page_offset ?? metadata.data_page_offset);
      expect(start).toBe(before);
      before = start + Number(metadata.total_compressed_size);
      const pages = readOffsetIndex({
        view: new DataView(buffer, byteOffset + Number(chunk.offset_index_offset), chunk.offset_index_length),
        offset: 0,
      }).page_locations;
      let page = Number(metadata.data_page_offset);
      for (const { offset, compressed_page_size: size } of pages) {
        expect(Number(offset)).toBe(page);
        page += size;
      }
      expect(page).toBe(before);
      const index = readColumnIndex(
        {
          view: new DataView(
            buffer,
            byteOffset + Number(chunk.column_index_offset),
            chunk.column_index_length,
          ),
          offset: 0,
        },
        schema[column + 1],
      );
      expect(index.null_pages).toHaveLength(pages.length);
    }
  }
});

test('a file of one part is taken over as it is', async () => {
  await new ParquetSink(path('one.parquet')).consume(streamOf(rows(0, 1).schema, [rows(0, 6000)]), context());
  const file = readFileSync(path('one.parquet'));
  const assembly = new FileAssembly();
  expect(Buffer.concat([...assembly.add(file), ...assembly.end()]).equals(file)).toBe(true);
});

describe('a failure of a thread', () => {
  const schema = new Schema([new Field('user', new Int32(), false), new Field('word', new Utf8(), false)]);
  const words = (from: number, count: number, bad = -1) => {
    const texts = vectorFromArray(
      Array.from({ length: count }, (_, i) => (from + i === bad ? 'a::b' : 'word')),
      new Utf8(),
    );
    const ids = makeData({ type: new Int32(), length: count, nullCount: 0, data: new Int32Array(count) });
    return new RecordBatch(
      schema,
      makeData({
        type: new Struct(schema.fields),
        length: count,
        nullCount: 0,
        children: [ids, texts.data[0]],
      }),
    );
  };

  test('names file, row and column, and leaves nothing', async () => {
    const pieces = Array.from({ length: 20 }, (_, i) => words(5000 * i, 5000, 42_017));
    for (const ctx of [context(), session.context()]) {
      const sink = await openSink(path('bad.dat'));
      const writing = sink.consume(streamOf(schema, pieces), ctx as never);
      await expect(writing).rejects.toMatchObject({
        name: 'DataError',
        details: { file: path('bad.dat'), row: 42_017, column: 'word' },
      });
      expect(readdirSync(folder)).not.toContain('bad.dat');
      expect(leftovers()).toEqual([]);
    }
  });

  test('ends a stream that would go on for ever', async () => {
    async function* endless() {
      for (let from = 0; ; from += 5000) yield words(from, 5000, 12_345);
    }
    await expect(
      openSink(path('endless.dat')).then((sink) =>
        sink.consume(batchStream(schema, endless()), session.context()),
      ),
    ).rejects.toThrow(/holds a line end or the delimiter/);
    expect(leftovers()).toEqual([]);
  });
});

test.each(['cancelled.parquet', 'cancelled', 'cancelled.csv', 'cancelled.ndjson'])(
  'a cancellation while threads encode leaves nothing: %s',
  async (name) => {
    const controller = new AbortController();
    async function* endless() {
      for (let batch = 0; ; batch++) {
        if (batch === 20) controller.abort();
        yield rows(0, 8000);
      }
    }
    const ctx = session.context({ signal: controller.signal });
    await expect(
      openSink(path(name)).then((sink) => sink.consume(batchStream(rows(0, 1).schema, endless()), ctx)),
    ).rejects.toThrow(CancelledError);
    expect(readdirSync(folder)).not.toContain(name);
    expect(leftovers()).toEqual([]);
  },
);
