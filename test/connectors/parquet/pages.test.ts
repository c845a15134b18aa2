/** Numbers that are read page by page: values as DuckDB reads them, memory, and damaged pages. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tableFromArrays } from 'apache-arrow';
import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { readSplit } from '../../../connectors/read-split.ts';
import { allPresent } from '../../../connectors/parquet/pages/all-present.ts';
import { PageKernel } from '../../../connectors/parquet/pages/page-kernel.ts';
import { unpackSnappy } from '../../../connectors/parquet/pages/unpack-page.ts';
import { DataError } from '../../../engine/errors.ts';
import type { SourceSplits } from '../../../engine/stream/split.ts';
import { originOf } from '../../../engine/stream/stream.ts';
import {
  arrowRows,
  context,
  duckdb,
  duckRows,
  outcome,
  plain,
  random,
  temporaryFolder,
} from './parquet-testing.ts';

const folder = temporaryFolder();
const ROWS = 400_000;
const path = (name: string) => join(folder, `${name}.parquet`);
/** Indices in runs and packed, a dictionary that overflows, plain values of 8 bytes. */
const query = `SELECT (i // 50)::INTEGER AS "user", ((i * 7919) % 30011)::INTEGER AS item, ((i * 31) % 10 / 2)::FLOAT AS rating, hash(i) / 3.0 AS wide, (i * 1000003)::BIGINT AS long FROM range(${ROWS}) t(i)`;

async function write(name: string, options: string, rows = query): Promise<void> {
  await (
    await duckdb()
  ).run(`COPY (${rows}) TO '${path(name)}' (FORMAT parquet, ROW_GROUP_SIZE 10000000, ${options})`);
}

/** The batches of a file, and the reads that it took from the disk. */
async function read(
  name: string,
  {
    batchSize = 100_000,
    columns,
  }: { readonly batchSize?: number; readonly columns?: readonly string[] } = {},
) {
  const reader = await (await parquetBackend()).open(path(name));
  const { counter } = reader as unknown as { counter: { fetches: number; bytes: number } };
  try {
    const batches = [];
    for await (const { batch } of reader.read({ batchSize, columns })) batches.push(batch);
    return { batches, fetches: counter.fetches, info: reader.info };
  } finally {
    await reader.close();
  }
}

/** A page of runs of random lengths and kinds, and the indices in it. */
function randomRuns(
  width: number,
  size: number,
  next: (below: number) => number,
): { readonly bytes: Uint8Array; readonly indices: number[] } {
  const bytes: number[] = [];
  const indices: number[] = [];
  const head = (value: number) => {
    for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
    bytes.push(value);
  };
  for (let run = 0; run < 40; run++) {
    const count = 1 + next(run % 5 === 0 ? 600 : 12);
    if (next(2) === 0) {
      const index = next(size);
      head(count << 1);
      for (let i = 0; i < (width + 7) >> 3; i++) bytes.push((index / 2 ** (8 * i)) & 255);
      indices.push(...Array<number>(count).fill(index));
      continue;
    }
    head((count << 1) | 1);
    const packed = new Uint8Array(count * width);
    for (let i = 0; i < 8 * count; i++) {
      const index = next(size);
      for (let bit = 0; bit < width; bit++)
        packed[(i * width + bit) >> 3] |= (Math.floor(index / 2 ** bit) & 1) << ((i * width + bit) & 7);
      indices.push(index);
    }
    bytes.push(...packed);
  }
  return { bytes: Uint8Array.from(bytes), indices };
}

describe('the kernel', () => {
  test.each(Array.from({ length: 21 }, (_, width) => width))(
    'gives the values of indices of %i bits, in pieces of random sizes',
    (width) => {
      const kernel = PageKernel.take();
      const next = random(width);
      for (const bytesOfValue of [4, 8] as const) {
        const size = Math.max(1, 2 ** width - next(2 ** Math.max(0, width - 1)));
        const { bytes, indices } = randomRuns(width, size, next);
        const [state, page, dictionary, out] = [
          24,
          bytes.length,
          size * bytesOfValue,
          indices.length * bytesOfValue,
        ].map((length) => kernel.reserve(length));
        const valueOf = (index: number) => (index * 2654435761) % 2 ** 32;
        kernel.bytes.set(bytes, page);
        const values = new DataView(kernel.buffer, dictionary);
        for (let index = 0; index < size; index++)
          values.setUint32(index * bytesOfValue, valueOf(index), true);
        new Uint32Array(kernel.buffer, state, 6).set([page, page + bytes.length, width, 0, 0, 0]);
        const readRuns = bytesOfValue === 4 ? kernel.functions.readRuns32 : kernel.functions.readRuns64;
        for (let done = 0; done < indices.length;) {
          const some = Math.min(indices.length - done, 1 + next(700));
          expect(readRuns(state, some, dictionary, size, out + done * bytesOfValue)).toBe(1);
          done += some;
        }
        const given = new DataView(kernel.buffer, out);
        expect(indices.map((_, i) => given.getUint32(i * bytesOfValue, true))).toEqual(indices.map(valueOf));
        expect(readRuns(state, 1, dictionary, size, out), 'behind the end of the page').toBe(0);
        if (width === 0) continue;
        new Uint32Array(kernel.buffer, state, 6).set([page, page + bytes.length, width, 0, 0, 0]);
        expect(
          readRuns(state, indices.length, dictionary, Math.max(...indices), out),
          'an index behind the dictionary',
        ).toBe(0);
        kernel.clear();
      }
      kernel.giveBack();
    },
  );

  test('unpacks Snappy as another library does, and refuses what is cut off or damaged, or stays inside its memory', () => {
    const kernel = PageKernel.take();
    const unpack = unpackSnappy(kernel);
    const next = random(5);
    for (let block = 0; block < 200; block++) {
      // Literals of 1 to 100 bytes, and copies of both common kinds from anywhere before, overlaps among
      // them.
      const bytes: number[] = [];
      let size = 0;
      for (let element = 0; element < 30; element++) {
        const count = 1 + next(60);
        const kind = size === 0 ? 0 : next(3);
        if (kind === 0) {
          bytes.push((count - 1) << 2, ...Array.from({ length: count }, () => next(256)));
          size += count;
        } else if (kind === 1) {
          const offset = 1 + next(Math.min(size, 2047));
          bytes.push(((next(8) << 2) & 28) | 1 | ((offset >> 8) << 5), offset & 255);
          size += (((bytes.at(-2) as number) >> 2) % 8) + 4;
        } else {
          const offset = 1 + next(size);
          bytes.push(((count - 1) << 2) | 2, offset & 255, offset >> 8);
          size += count;
        }
      }
      const packed = Uint8Array.from([(size & 127) | 128, (size >> 7) & 127, ...bytes]);
      const expected = new Uint8Array(size);
      snappyUncompress(packed, expected);
      expect(unpack(packed, size)).toEqual(expected);
      expect(() => unpack(packed.subarray(0, packed.length - 1), size)).toThrow();
      expect(() => unpack(packed, size - 1)).toThrow();
      packed[next(packed.length)] ^= 1 << next(8);
      const damaged = (() => {
        try {
          return unpack(packed, size).length;
        } catch {
          return size;
        }
      })();
      expect(damaged).toBe(size);
    }
    kernel.giveBack();
  });

  test('levels: all values are there, or not', () => {
    expect(allPresent(Uint8Array.of(200, 1, 1), 100)).toBe(true);
    expect(allPresent(Uint8Array.of(200, 1, 0), 100)).toBe(false);
    expect(allPresent(Uint8Array.of(198, 1, 1), 100)).toBe(false);
    expect(allPresent(Uint8Array.of(3, 255, 4, 1), 10)).toBe(true);
    expect(allPresent(Uint8Array.of(5, 255, 3), 10)).toBe(true);
    expect(allPresent(Uint8Array.of(5, 255, 1), 10)).toBe(false);
    expect(allPresent(Uint8Array.of(5, 255), 10)).toBe(false);
    expect(allPresent(Uint8Array.of(128, 128, 128, 128, 128, 128), 10)).toBe(false);
    expect(allPresent(new Uint8Array(0), 1)).toBe(false);
  });
});

describe.each(['zstd', 'snappy', 'gzip', 'brotli', 'lz4_raw', 'uncompressed'])('%s', (codec) => {
  test.each(['V1', 'V2'])(
    'values of version %s are those that DuckDB reads, in batches that cut across pages',
    async (version) => {
      const name = `${codec}-${version}`;
      await write(
        name,
        `CODEC ${codec}, PARQUET_VERSION ${version}`,
        query.replace(String(ROWS), codec === 'brotli' ? '5000' : '30000'),
      );
      const { batches, fetches } = await read(name, { batchSize: 997 });
      // One window of each column, and nothing by the decoder. Version 2 has whole numbers by their
      // differences, which are left to it.
      if (version === 'V1') expect(fetches).toBe(5);
      expect(batches.slice(0, -1).every(({ numRows }) => numRows === 997)).toBe(true);
      expect(arrowRows(batches).map((row) => row.map(plain))).toEqual(
        (await duckRows(`SELECT * FROM '${path(name)}'`)).map((row) => row.map(plain)),
      );
    },
  );
});

describe('one row group', () => {
  beforeAll(() => write('large', 'CODEC zstd'));

  test('is read a window at a time, and not by the decoder', async () => {
    const columns = {
      user: Int32Array.from({ length: ROWS }, (_, i) => i),
      long: BigInt64Array.from({ length: ROWS }, (_, i) => BigInt(i)),
    };
    const table = tableFromArrays(columns);
    const writer = await (
      await parquetBackend()
    ).create(path('windows'), table.schema, { codec: 'uncompressed', rowGroupSize: ROWS, dictionary: false });
    for (const batch of table.batches) await writer.write(batch);
    await writer.close();
    const reader = await (await parquetBackend()).open(path('windows'));
    const { counter } = reader as unknown as { counter: { fetches: number; bytes: number } };
    const batches = reader.read({ batchSize: 1000 });
    let last = 0;
    for await (const { batch, firstRow } of batches) {
      expect(batch.getChildAt(0)?.get(999)).toBe(firstRow + 999);
      expect(batch.getChildAt(1)?.get(999)).toBe(BigInt(firstRow + 999));
      // Two windows of 1 MiB are there, and what was given.
      expect(counter.bytes).toBeLessThan(2.1 * 2 ** 20 + 12.2 * (firstRow + 1000));
      last = counter.fetches;
    }
    await reader.close();
    expect(last).toBe(Math.ceil((4 * ROWS) / 2 ** 20) + Math.ceil((8 * ROWS) / 2 ** 20));
  });

  test('of many pages is read without the decoder', async () => {
    await write('many', 'CODEC snappy');
    const { fetches, info } = await read('many');
    expect(fetches).toBeLessThanOrEqual(
      info.rowGroups[0].columns.reduce((sum, { bytes }) => sum + Math.ceil(bytes / 2 ** 20), 5),
    );
  });

  test('with a null in the middle goes on where its pages were left', async () => {
    const rows = `SELECT "user", CASE WHEN "user" = 5000 THEN NULL ELSE item END AS item FROM (${query})`;
    await write('null', 'CODEC zstd', rows);
    const { batches } = await read('null', { batchSize: 10_000 });
    expect(batches.reduce((sum, { numRows }) => sum + numRows, 0)).toBe(ROWS);
    const sums = await duckRows(
      `SELECT count(item)::INTEGER, sum(item)::DOUBLE, sum("user")::DOUBLE FROM '${path('null')}'`,
    );
    const items = batches.flatMap((batch) => [...(batch.getChildAt(1) as Iterable<number | null>)]);
    const users = batches.flatMap((batch) => [...(batch.getChildAt(0) as Iterable<number>)]);
    const sum = (values: readonly (number | null)[]) =>
      values.reduce<number>((total, value) => total + (value ?? 0), 0);
    expect([items.filter((item) => item !== null).length, sum(items), sum(users)]).toEqual(sums[0]);
  });

  test('whose pages are damaged is an error that names file, row group and column', async () => {
    const bytes = readFileSync(path('large'));
    const { info } = await read('large', { columns: ['user'] });
    const { start, bytes: stored } = info.rowGroups[0].columns[1];
    writeFileSync(path('damaged'), bytes.fill(0xff, start + (stored >> 1), start + stored));
    const result = await outcome(() => read('damaged', { columns: ['user', 'item', 'rating'] }));
    expect(result).toBeInstanceOf(DataError);
    expect((result as DataError).details).toMatchObject({
      phase: 'read',
      file: path('damaged'),
      rowGroup: 0,
      column: 'item',
    });
    await expect(read('damaged', { columns: ['user', 'rating'] })).resolves.toBeDefined();
  });

  test('that is large is cut between pages into ranges that other threads read, to the same rows', async () => {
    const rows = 2_300_000;
    const values = {
      user: Int32Array.from({ length: rows }, (_, i) => i >> 4),
      item: Int32Array.from({ length: rows }, (_, i) => (i * 7919) % 30011),
      rating: Float32Array.from({ length: rows }, (_, i) => i % 5),
    };
    const table = tableFromArrays(values);
    const writer = await (
      await parquetBackend()
    ).create(path('ranges'), table.schema, { codec: 'snappy', rowGroupSize: rows });
    for (const batch of table.batches) await writer.write(batch);
    await writer.close();
    const splitsOf = async (columns: string[]) =>
      (await new ParquetSource(path('ranges')).splits(
        context(),
        columns,
        undefined,
        2 ** 22,
      )) as SourceSplits;
    const { schema, splits } = await splitsOf(['rating', 'user']);
    expect(splits.length).toBe(3);
    expect(splits.reduce((sum, split) => sum + (split.rows ?? Number.NaN), 0)).toBe(rows);
    let next = 0;
    for (const split of splits) {
      const before = next;
      for await (const batch of readSplit(split, schema, { signal: context().signal, takesFaults: false })) {
        expect(originOf(batch)).toMatchObject({ file: path('ranges'), rowGroup: 0, firstRow: next });
        expect(batch.getChild('user')?.toArray()).toEqual(values.user.subarray(next, next + batch.numRows));
        expect(batch.getChild('rating')?.toArray()).toEqual(
          values.rating.subarray(next, next + batch.numRows),
        );
        next += batch.numRows;
      }
      expect(next - before).toBe(split.rows);
      expect(next - before).toBeLessThanOrEqual(2 ** 20);
    }
    // A page that is damaged is an error of its range alone.
    const bytes = readFileSync(path('ranges'));
    const [, item] = (await read('ranges', { columns: ['user'] })).info.rowGroups[0].columns;
    writeFileSync(
      path('ranges'),
      bytes.fill(0xee, item.start + item.bytes - 3000, item.start + item.bytes - 1000),
    );
    const damaged = await splitsOf(['user', 'item']);
    const results = await Promise.all(
      damaged.splits.map((split) =>
        outcome(async () => {
          for await (const _ of readSplit(split, damaged.schema, {
            signal: context().signal,
            takesFaults: false,
          }));
        }),
      ),
    );
    expect(results.slice(0, -1)).toEqual(Array(results.length - 1).fill(undefined));
    expect((results.at(-1) as DataError).details).toMatchObject({
      file: path('ranges'),
      rowGroup: 0,
      column: 'item',
    });
  });
});
