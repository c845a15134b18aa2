/** Folders in which a file that is cut into ranges is before or after a file that is not. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { col, DataError } from '../../../index.ts';
import { everyNth } from '../../support/deep.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

/**
 * Rows of files. A file of 660,000 rows has about 9 MB and is cut into ranges, for tables and for training.
 * With a small file, none of these ranges is too large for one task.
 */
const folders: Readonly<Record<string, readonly number[]>> = {
  'large and small': [660_000, 8000],
  'small, large and small': [8000, 660_000, 7000],
};

const root = mkdtempSync(join(tmpdir(), 'factorflow-cut-'));

/** Writes the files of a folder; rows are numbered through all of them. */
function write(name: string, lengths: readonly number[], bad?: number): string {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  let row = 0;
  lengths.forEach((length, file) => {
    const lines = Array.from({ length }, () => {
      const rating = row === bad ? 'x' : 1 + (row % 5);
      return `${row % 4999},${100_000 + (row++ % 7001)},${rating}`;
    });
    writeFileSync(join(folder, `${file}.csv`), `user,item,rating\n${lines.join('\n')}\n`);
  });
  return folder;
}

describe.each(everyNth(Object.entries(folders), 2, 1))('a folder of %s files', (name, lengths) => {
  const rows = lengths.reduce((sum, length) => sum + length, 0);
  beforeAll(async () => {
    write(name, lengths);
  });
  afterAll(async () => {
    rmSync(root, { recursive: true, force: true });
  });

  it('has all its rows', async () => {
    const read = session.read.csv(join(root, name));
    expect(await read.count()).toBe(rows);
    const counted = await read.filter(col('rating').ge(1)).count();
    expect(counted).toBe(rows);
  });

  it('names the line of a bad value in the large file', async () => {
    const file = lengths.indexOf(660_000);
    const before = lengths.slice(0, file).reduce((sum, length) => sum + length, 0);
    const folder = write(`${name}, bad`, lengths, before + 659_990);
    const read = session.read.csv(folder, { types: { rating: 'float32' } });
    const error = await read
      .filter(col('rating').ge(1))
      .count()
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(DataError);
    // The header is line 1.
    expect(String(error)).toContain('line 659992: "x" is not a number');
    expect(error).toMatchObject({ details: { file: join(folder, `${file}.csv`) } });
  });
});
