import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import type { ParquetBackendName } from '../../../connectors/parquet/backend.ts';
import { DataError } from '../../../engine/errors.ts';
import { arrowRows, duckRows, goldenFiles, goldenFolder, outcome, plain } from './parquet-testing.ts';

async function readAll(name: ParquetBackendName, file: string, columns?: string[]) {
  const reader = await (await parquetBackend(name)).open(file);
  try {
    const located = [];
    for await (const batch of reader.read({ columns, batchSize: 700 })) located.push(batch);
    return { schema: reader.info.schema, located, info: reader.info };
  } finally {
    await reader.close();
  }
}

/** The files that parquetjs-lite must read; it may refuse the others. */
const readableByLite =
  /^(ratings|mixed)-(uncompressed|snappy|gzip)-V1|^unique-V1|^all-null|^empty|^odd-names|^unsigned|^special-floats/;

describe.each(goldenFiles)('%s', (name) => {
  const file = join(goldenFolder, name);

  test('parquet-wasm reads what DuckDB reads', async () => {
    const { located, info } = await readAll('parquet-wasm', file);
    const expected = await duckRows(`SELECT * FROM read_parquet('${file}')`);
    expect(arrowRows(located.map(({ batch }) => batch)).map(plain)).toEqual(expected.map(plain));
    expect(info.rows).toBe(expected.length);
    // Batches follow each other without gaps and never cross a row group.
    let row = 0;
    for (const { batch, rowGroup, firstRow } of located) {
      expect(firstRow).toBe(row);
      expect(firstRow).toBeGreaterThanOrEqual(info.rowGroups[rowGroup].firstRow);
      row += batch.numRows;
      expect(row).toBeLessThanOrEqual(info.rowGroups[rowGroup].firstRow + info.rowGroups[rowGroup].rows);
    }
  });

  test('parquetjs-lite reads the same, or refuses and says why', async () => {
    const lite = await outcome(() => readAll('parquetjs-lite', file));
    if (lite instanceof Error) {
      expect(lite).toBeInstanceOf(DataError);
      expect(lite.message).toContain(file);
      expect(lite.message).toMatch(/codec|encoding|kind|dictionary/);
      expect(name).not.toMatch(readableByLite);
      return;
    }
    const wasm = await readAll('parquet-wasm', file);
    expect(String(lite.schema)).toBe(String(wasm.schema));
    const negativeZero = (value: unknown) => (Object.is(value, -0) ? 0 : value);
    const rows = (all: typeof wasm) =>
      arrowRows(all.located.map(({ batch }) => batch)).map((row) => row.map(negativeZero).map(plain));
    expect(rows(lite)).toEqual(rows(wasm));
  });

  test('each column alone is the same as among the others', async () => {
    const all = await readAll('parquet-wasm', file);
    for (const [index, { name: column }] of all.schema.fields.entries()) {
      const alone = await readAll('parquet-wasm', file, [column]);
      expect(
        alone.located.every(
          ({ batch }) => batch.schema.fields.length === 1 && batch.schema.fields[0].name === column,
        ),
      ).toBe(true);
      const rows = (located: typeof all.located) => arrowRows(located.map(({ batch }) => batch)).map(plain);
      expect(rows(alone.located)).toEqual(rows(all.located).map((row) => [(row as unknown[])[index]]));
    }
  });
});

test('the golden files hold the codecs and encodings they are for', async () => {
  const codecs = new Set<string>();
  const encodings = new Set<string>();
  const wasm = await parquetBackend();
  for (const name of goldenFiles) {
    const reader = await wasm.open(join(goldenFolder, name));
    for (const { columns } of reader.info.rowGroups) {
      for (const column of columns) {
        codecs.add(column.codec);
        for (const encoding of column.encodings) encodings.add(encoding);
      }
    }
    await reader.close();
  }
  expect([...codecs].sort()).toEqual(['brotli', 'gzip', 'lz4_raw', 'snappy', 'uncompressed', 'zstd']);
  expect([...encodings].sort()).toEqual([
    'byte_stream_split',
    'delta_binary_packed',
    'delta_length_byte_array',
    'plain',
    'plain_dictionary',
    'rle_dictionary',
  ]);
});

test('statistics in the footer are the smallest and largest values', async () => {
  const file = join(goldenFolder, 'unique-V2.parquet');
  const reader = await (await parquetBackend()).open(file);
  await reader.close();
  const statistics = (column: string) =>
    reader.info.rowGroups[0].columns.find((chunk) => chunk.column === column)?.statistics;
  const [[smallMin, smallMax, bigMin, bigMax, ratingMin, ratingMax]] = await duckRows(
    `SELECT min(small), max(small), min(big), max(big), min(rating), max(rating) FROM '${file}'`,
  );
  expect(statistics('small')).toMatchObject({ min: smallMin, max: smallMax });
  expect(statistics('big')).toMatchObject({ min: bigMin, max: bigMax });
  expect(statistics('rating')).toMatchObject({ min: ratingMin, max: ratingMax });
  expect(statistics('word')?.min).toBeUndefined();
});

test('an unknown backend is refused by name', async () => {
  await expect(parquetBackend('arrow' as ParquetBackendName)).rejects.toThrow(
    'unknown Parquet backend "arrow". Use one of: parquet-wasm, parquetjs-lite',
  );
});

test('batches of a stream share nothing with the decoder', async () => {
  const file = join(goldenFolder, 'ratings-zstd-V1.parquet');
  const first = await readAll('parquet-wasm', file);
  const before = JSON.stringify(arrowRows(first.located.map(({ batch }) => batch)));
  await Promise.all(Array.from({ length: 6 }, () => readAll('parquet-wasm', file)));
  expect(JSON.stringify(arrowRows(first.located.map(({ batch }) => batch)))).toBe(before);
});
