/**
 * The number of parts of an exchange depends on the number of rows that it divides, as far as statistics
 * limit that number.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { col, type Column, count, type Dataset } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const file = join(temporaryFolder(), 'rows.parquet');
const ROWS = 120_000;
const drawn = (i: number) => Math.imul(i, 0x9e37_79b1) >>> 8;
const session = await cpuSession({ splitBytes: 20_000 });

beforeAll(async () => {
  const rows = Array.from({ length: ROWS }, (_, i) => ({
    few: drawn(i) % 50,
    other: drawn(i + ROWS) % 20,
    many: drawn(i),
  }));
  const whole = session
    .fromRows(rows)
    .select(...['few', 'other', 'many'].map((name) => col(name).cast('int32').as(name)));
  await whole.write.parquet(file, { rowGroupSize: 20_000 });
});

const partsOf = async (rows: Dataset) => {
  const text = await rows.explain();
  const [, parts] = /exchange by hash of .* to (\d+) parts?/.exec(text) ?? [];
  return Number(parts);
};

describe('parts of an exchange', () => {
  it('are few for groups by keys of few values', async () => {
    const rows = session.read.parquet(file);
    const grouped = (...keys: (string | Column)[]) => partsOf(rows.groupBy(...keys).agg(count()));
    expect(await grouped('few')).toBe(1);
    expect(
      await partsOf(rows.filter(col('many').gt(9)).withColumnRenamed('few', 'f').groupBy('f').agg(count())),
    ).toBe(1);
    expect(await partsOf(rows.select('few').distinct())).toBe(1);
    const [two, many] = [await grouped('few', 'other'), await grouped('many')];
    expect(two).toBeGreaterThanOrEqual(1);
    expect(many).toBeGreaterThan(two);
    // Nothing is known of the values of an expression.
    expect(await grouped(col('few').plus(1).as('next'))).toBeGreaterThan(two);
    expect(await partsOf(rows.repartition(9, 'few'))).toBe(9);
  });

  it('have all groups', async () => {
    const rows = session.read.parquet(file);
    const groups = await rows.groupBy('few', 'other').agg(count().as('n')).toArray();
    expect(groups).toHaveLength(await rows.select('few', 'other').distinct().count());
    expect(groups.reduce((sum, { n }) => sum + Number(n), 0)).toBe(ROWS);
  });
});
