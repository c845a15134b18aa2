import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parquetBackendNames } from '../../connectors/parquet/backend.ts';
import type { ParquetBackendName } from '../../connectors/parquet/backend.ts';
import { parquetBackend } from '../../connectors/parquet/backends.ts';
import { DataError } from '../../engine/errors.ts';
import { goldenFolder, outcome, temporaryFolder } from './parquet-testing.ts';

const folder = temporaryFolder();
const golden = (name: string) => join(goldenFolder, `${name}.parquet`);

async function countRows(file: string, backend: ParquetBackendName = 'parquet-wasm'): Promise<number> {
  const reader = await (await parquetBackend(backend)).open(file);
  try {
    let rows = 0;
    for await (const { batch } of reader.read({ batchSize: 500 })) rows += batch.numRows;
    return rows;
  } finally {
    await reader.close();
  }
}

/** Linear congruential: the same positions and bits in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe.each(parquetBackendNames)('%s', (backend) => {
  test('a file cut off anywhere is an error that names it', async () => {
    const file = join(folder, `${backend}-cut.parquet`);
    const bytes = readFileSync(golden('mixed-snappy-V1'));
    for (let twentieth = 0; twentieth < 20; twentieth++) {
      writeFileSync(file, bytes);
      truncateSync(file, Math.floor((bytes.length * twentieth) / 20));
      const result = await outcome(() => countRows(file, backend));
      expect(result, `${twentieth}/20`).toBeInstanceOf(DataError);
      expect(String(result)).toContain(file);
    }
  });

  test('a flipped bit is an error or leaves as many rows; it never hangs, crashes or harms the next file', async () => {
    const file = join(folder, `${backend}-flip.parquet`);
    const errors = new Set<string>();
    for (const name of ['mixed-zstd-V2', 'mixed-snappy-V1', 'mixed-gzip-V1', 'mixed-uncompressed-V1', 'unique-V2', 'list-features']) {
      const bytes = readFileSync(golden(name));
      const rows = await outcome(() => countRows(golden(name), backend));
      if (rows instanceof Error) continue;
      const next = random(20 + name.length);
      for (let flip = 0; flip < 40; flip++) {
        const damaged = Buffer.from(bytes);
        const at = next(damaged.length);
        damaged[at] ^= 1 << next(8);
        writeFileSync(file, damaged);
        const result = await outcome(() => countRows(file, backend));
        if (result instanceof Error) {
          expect(result, `${name}, byte ${at}`).toBeInstanceOf(DataError);
          expect(result.message).toContain(file);
          errors.add(result.message);
        } else {
          expect(result, `${name}, byte ${at}`).toBe(rows);
        }
      }
      expect(await countRows(golden(name), backend)).toBe(rows);
    }
    expect(errors.size).toBeGreaterThan(4);
  });

  test('what is no Parquet file is told apart', async () => {
    const say = async (name: string, content: string | Buffer) => {
      const file = join(folder, `${backend}-${name}`);
      writeFileSync(file, content);
      return String(await outcome(() => countRows(file, backend)));
    };
    expect(await say('zero', '')).toMatch(/the file is empty \(0 bytes\)/);
    expect(await say('short', 'PAR1')).toMatch(/not a Parquet file: 4 bytes/);
    expect(await say('csv', 'user,item,rating\n1,2,3\n')).toMatch(/not a Parquet file: it does not end with "PAR1"/);
    expect(await say('started', `PAR1${'x'.repeat(50)}`)).toMatch(/cut off: it starts well/);
    expect(await say('encrypted', `PARE${'x'.repeat(50)}PARE`)).toMatch(/encrypted/);
    expect(await say('footer', `PAR1${'x'.repeat(50)}\xff\xff\xff\x7fPAR1`)).toMatch(/damaged: a footer of/);
    expect(String(await outcome(() => countRows(join(folder, 'nowhere.parquet'), backend)))).toMatch(/no such file or folder/);
    expect(String(await outcome(() => countRows(folder, backend)))).toMatch(/folder where a file was expected/);
  });
});

test('an encrypted column is refused by name of the file', async () => {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const file = join(folder, 'encrypted.parquet');
  await connection.run("PRAGMA add_parquet_key('k', '0123456789112345')");
  const written = await outcome(() => connection.run(`COPY (SELECT 1 AS a) TO '${file}' (FORMAT parquet, ENCRYPTION_CONFIG {footer_key: 'k'})`));
  if (written instanceof Error) writeFileSync(file, `PARE${'x'.repeat(20)}PARE`);
  await expect(countRows(file)).rejects.toThrow(/the file is encrypted.*Decrypt it first/);
});

test('reading goes on beside a file that makes the decoder break down', async () => {
  const file = join(folder, 'beside.parquet');
  const bytes = readFileSync(golden('mixed-zstd-V1'));
  bytes.fill(0xff, 60, 120);
  writeFileSync(file, bytes);
  const results = await Promise.all([file, golden('mixed-zstd-V1'), file, golden('mixed-snappy-V2')].map((path) => outcome(() => countRows(path))));
  expect(results.map((result) => (result instanceof DataError ? 'error' : result))).toEqual(['error', 400, 'error', 400]);
  expect(String(results[0])).toMatch(/row group 0/);
});
