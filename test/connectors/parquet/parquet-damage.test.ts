import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parquetBackendNames } from '../../../connectors/parquet/backend.ts';
import type { ParquetBackendName, ParquetFileInfo } from '../../../connectors/parquet/backend.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { DataError } from '../../../engine/errors.ts';
import { isDeep } from '../../support/deep.ts';
import { goldenFolder, outcome, plain, random } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const golden = (name: string) => join(goldenFolder, `${name}.parquet`);

interface Content {
  readonly info: ParquetFileInfo;
  readonly rows: number;
  /** Values by row group and column. */
  readonly values: readonly Map<string, readonly unknown[]>[];
}

async function readContent(file: string, backend: ParquetBackendName): Promise<Content> {
  const reader = await (await parquetBackend(backend)).open(file);
  try {
    const values = reader.info.rowGroups.map(() => new Map<string, unknown[]>());
    let rows = 0;
    for await (const { batch, rowGroup } of reader.read({ batchSize: 500 })) {
      rows += batch.numRows;
      for (const [index, { name }] of batch.schema.fields.entries()) {
        const column = batch.getChildAt(index);
        const known = values[rowGroup].get(name) ?? [];
        values[rowGroup].set(name, known);
        for (let row = 0; row < batch.numRows; row++) known.push(valueAt(() => plain(column?.get(row))));
      }
    }
    return { info: reader.info, rows, values };
  } finally {
    await reader.close();
  }
}

/** The value, or a text in its place: arrow cannot show some timestamps of damaged pages. */
function valueAt(get: () => unknown): unknown {
  try {
    return get();
  } catch {
    return 'not to be shown';
  }
}

/**
 * The places where values of a damaged file differ without an explanation. Two flips cannot be noticed
 * without checksums: one inside a column's pages, which changes that column in that row group, and one in the
 * footer that makes a column another type, or drops or adds its nulls, which changes the field as well.
 */
function unexplained(whole: Content, damaged: Content, flipped: number): string[] {
  return whole.info.rowGroups
    .flatMap(({ columns }, rowGroup) =>
      whole.info.schema.fields.filter((field, index) => {
        const other = damaged.info.schema.fields[index];
        const inside = columns.some(
          ({ column, start, bytes }) =>
            column.split('.')[0] === field.name && flipped >= start && flipped < start + bytes,
        );
        if (inside || String(other.type) !== String(field.type) || other.nullable !== field.nullable)
          return false;
        return !isDeepStrictEqual(
          whole.values[rowGroup].get(field.name),
          damaged.values[rowGroup].get(field.name),
        );
      }),
    )
    .map(({ name }) => name);
}

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

  test('a flipped bit is an error or leaves the rows and all values but its own column chunk; it never hangs, crashes or harms the next file', async () => {
    const file = join(folder, `${backend}-flip.parquet`);
    const errors = new Set<string>();
    for (const name of [
      'mixed-zstd-V2',
      'mixed-snappy-V1',
      'mixed-gzip-V1',
      'mixed-uncompressed-V1',
      'unique-V2',
      'list-features',
    ]) {
      const bytes = readFileSync(golden(name));
      const whole = await outcome(() => readContent(golden(name), backend));
      if (whole instanceof Error) continue;
      const footerAt = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8);
      const next = random(20 + name.length);
      for (let flip = 0; flip < (isDeep ? 60 : 12); flip++) {
        const damaged = Buffer.from(bytes);
        // Every third flip is in the footer, which is small.
        const at = flip % 3 === 0 ? footerAt + next(damaged.length - footerAt) : next(damaged.length);
        damaged[at] ^= 1 << next(8);
        writeFileSync(file, damaged);
        const result = await outcome(() => readContent(file, backend));
        if (result instanceof Error) {
          expect(result, `${name}, byte ${at}`).toBeInstanceOf(DataError);
          expect(result.message).toContain(file);
          errors.add(result.message);
        } else {
          expect(result.rows, `${name}, byte ${at}`).toBe(whole.rows);
          expect(unexplained(whole, result, at), `${name}, byte ${at}`).toEqual([]);
        }
      }
      expect(unexplained(whole, await readContent(golden(name), backend), -1)).toEqual([]);
    }
    expect(errors.size).toBeGreaterThan(2);
  });

  test('files that are not Parquet are refused, each with its reason', async () => {
    const say = async (name: string, content: string | Buffer) => {
      const file = join(folder, `${backend}-${name}`);
      writeFileSync(file, content);
      return String(await outcome(() => countRows(file, backend)));
    };
    expect(await say('zero', '')).toMatch(/the file is empty \(0 bytes\)/);
    expect(await say('short', 'PAR1')).toMatch(/not a Parquet file: 4 bytes/);
    expect(await say('csv', 'user,item,rating\n1,2,3\n')).toMatch(
      /not a Parquet file: it does not end with "PAR1"/,
    );
    expect(await say('started', `PAR1${'x'.repeat(50)}`)).toMatch(/cut off: it starts well/);
    expect(await say('encrypted', `PARE${'x'.repeat(50)}PARE`)).toMatch(/encrypted/);
    expect(await say('footer', `PAR1${'x'.repeat(50)}\xff\xff\xff\x7fPAR1`)).toMatch(/damaged: a footer of/);
    // A hole of 2 GiB that takes no room on the disk.
    await say('hole', 'PAR1');
    truncateSync(join(folder, `${backend}-hole`), 2 ** 31);
    appendFileSync(join(folder, `${backend}-hole`), '\x00\x00\x00\x60PAR1');
    expect(String(await outcome(() => countRows(join(folder, `${backend}-hole`), backend)))).toMatch(
      /a footer of 1\.5 GiB is too large: 1\.0 GiB are allowed/,
    );
    expect(String(await outcome(() => countRows(join(folder, 'nowhere.parquet'), backend)))).toMatch(
      /no such file or folder/,
    );
    expect(String(await outcome(() => countRows(folder, backend)))).toMatch(
      /folder where a file was expected/,
    );
  });
});

test.each(parquetBackendNames)(
  '%s does not take compressed pages for plain values when the footer says so',
  async (backend) => {
    const file = join(folder, `${backend}-codec.parquet`);
    const bytes = readFileSync(golden('mixed-snappy-V1'));
    const footerAt = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8);
    // The column's name in its chunk, then the codec: snappy (1, stored as 2) becomes uncompressed (0).
    const at = bytes.lastIndexOf('wide\x15\x02', undefined, 'latin1') + 5;
    expect(at).toBeGreaterThan(footerAt);
    bytes[at] = 0;
    writeFileSync(file, bytes);
    await expect(countRows(file, backend)).rejects.toThrow(DataError);
  },
);

test('reading goes on beside a file that makes the decoder break down', async () => {
  const file = join(folder, 'beside.parquet');
  const bytes = readFileSync(golden('mixed-zstd-V1'));
  bytes.fill(0xff, 60, 120);
  writeFileSync(file, bytes);
  const results = await Promise.all(
    [file, golden('mixed-zstd-V1'), file, golden('mixed-snappy-V2')].map((path) =>
      outcome(() => countRows(path)),
    ),
  );
  expect(results.map((result) => (result instanceof DataError ? 'error' : result))).toEqual([
    'error',
    400,
    'error',
    400,
  ]);
  expect(String(results[0])).toMatch(/row group 0/);
});
