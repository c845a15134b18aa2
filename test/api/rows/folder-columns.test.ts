/** The columns that are made from the names of folders, and the folders that are read. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Vector } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ConstantColumn, constantData } from '../../../connectors/folders/folder-columns.ts';
import { col, type Dataset, functions } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const session = await cpuSession({ workers: 1 });

describe('types are inferred from all values', () => {
  it.each<[string, readonly string[], string]>([
    ['int32', ['1', '-20'], 'Int32'],
    ['int64', ['1', '9999999999'], 'Int64'],
    ['too large', ['1', '99999999999999999999'], 'Utf8'],
    ['two forms', ['7', '007'], 'Utf8'],
    ['float64', ['0.5', '3.0', '1.0E10', 'NaN'], 'Float64'],
    ['versions', ['1.10', '1.9'], 'Utf8'],
    ['words', ['NaN', 'Infinity'], 'Utf8'],
    ['dates', ['2024-02-29', '1999-01-01'], 'Date32<DAY>'],
    ['no dates', ['2024-02-30', '1999-01-01'], 'Utf8'],
    ['text', ['1', 'x'], 'Utf8'],
    ['nulls alone', ['__HIVE_DEFAULT_PARTITION__'], 'Utf8'],
    ['with a null', ['__HIVE_DEFAULT_PARTITION__', '5'], 'Int32'],
  ])('%s', async (name, values, type) => {
    for (const value of values) {
      mkdirSync(path(`types/${name}/k=${value}`), { recursive: true });
      writeFileSync(path(`types/${name}/k=${value}/part-0.csv`), 'v\n1\n');
    }
    const typeOf = async (partitions: 'infer' | 'text' | 'none') =>
      (await session.read.csv(path(`types/${name}`), { partitions }).schema()).fields.map(
        (field) => `${field.name} ${field.type}`,
      );
    expect(await typeOf('infer')).toEqual(['v Int32', `k ${type}`]);
    expect(await typeOf('text')).toEqual(['v Int32', 'k Utf8']);
    expect(await typeOf('none')).toEqual(['v Int32']);
  });
});

describe('folders that a filter excludes', () => {
  let rows: Dataset;
  beforeAll(async () => {
    const made = Array.from({ length: 200 }, (_, i) => ({
      i,
      year: 1990 + (i % 20),
      g: i % 4 === 0 ? undefined : `g${i % 4}`,
    }));
    await session.fromRows(made).write.partitionBy('year', 'g').parquet(path('skipped'));
    await session.fromRows(made).write.partitionBy('year', 'g').ndjson(path('skipped-lines'));
    rows = session.read.parquet(path('skipped'));
    // Files that cause an error if their rows are read; only their footers are intact.
    for (const year of [1990, 1991, 2000]) {
      for (const g of readdirSync(path(`skipped-lines/year=${year}`)))
        writeFileSync(path(`skipped-lines/year=${year}/${g}/part-00000.ndjson`), '{"i":1}\n{"i":{}}\n');
    }
  });

  it.each<[string, () => Dataset, number]>([
    ['a comparison', () => rows.filter(col('year').ge(2005)), 50],
    ['values', () => rows.filter(col('year').isIn(1990, 1995)), 20],
    ['or, and arithmetic', () => rows.filter(col('year').eq(1990).or(col('year').mod(1999).eq(0))), 20],
    ['null', () => rows.filter(col('g').isNull()), 50],
    ['not null, and a stored column', () => rows.filter(col('g').isNotNull().and(col('i').lt(100))), 75],
    ['text', () => rows.filter(functions.lower(col('g')).like('%1')), 50],
    ['both columns in one part', () => rows.filter(col('year').eq(1991).or(col('g').eq('g1'))), 50],
    ['all', () => rows.filter(col('year').lt(0)), 0],
    ['through a projection', () => rows.withColumnRenamed('year', 'y').filter(col('y').eq(1993)), 10],
  ])('by %s: the rows are those of the filter', async (_, make, count) => {
    expect(await make().count()).toBe(count);
    expect((await make().toArray()).length).toBe(count);
  });

  it('count alone where no file is left', async () => {
    const text = await rows.filter(col('year').lt(0).and(col('i').lt(9))).explain();
    expect(text).toContain('reads 0 of 20 folders: names exclude the others');
    expect(text).not.toContain('row group');
  });

  it('are read where the condition fails for a value of another folder, as its rows', async () => {
    const failing = rows.filter(col('g').cast('int32').eq(1));
    expect(await failing.explain()).toContain('reads all 20 folders: names exclude none');
    await expect(failing.toArray()).rejects.toThrow("'g1' is no int32");
    expect(await rows.filter(col('year').times(2).eq(3980)).explain()).toContain('reads 1 of 20 folders');
  });

  it('are not read', async () => {
    const lines = session.read.ndjson(path('skipped-lines'), { types: { i: 'int32' } });
    await expect(lines.toArray()).rejects.toThrow('year=1990');
    const some = lines.filter(col('year').between(1992, 1999));
    expect((await some.toArray()).length).toBe(80);
    expect(await some.explain()).toContain('reads 8 of 20 folders: names exclude the others');
    expect(await some.explain()).toContain('folders: year >= 1992 and year <= 1999');
  });
});

describe('folders that cannot be read together', () => {
  it('are of other names, of another depth or of another order', async () => {
    const layouts = { names: ['a=1', 'b=1'], depth: ['a=1', 'a=2/b=1'], order: ['a=1/b=1', 'b=2/a=1'] };
    for (const [name, folders] of Object.entries(layouts)) {
      for (const one of folders) {
        mkdirSync(path(`mixed/${name}/${one}`), { recursive: true });
        writeFileSync(path(`mixed/${name}/${one}/part-0.csv`), 'v\n1\n');
      }
      const [first, second] = folders.map((one) => path(`mixed/${name}/${one}/part-0.csv`));
      const error: unknown = await session.read
        .csv(path(`mixed/${name}`))
        .schema()
        .catch((thrown: unknown) => thrown);
      expect(String(error)).toContain(first);
      expect(String(error)).toContain(second);
      expect(String(error)).toContain('Read files of one layout together');
      expect(await session.read.csv(path(`mixed/${name}`), { partitions: 'none' }).count()).toBe(2);
    }
  });

  it('name a column twice', async () => {
    mkdirSync(path('twice/a=1/a=2'), { recursive: true });
    writeFileSync(path('twice/a=1/a=2/part-0.csv'), 'v\n5\n');
    await expect(session.read.csv(path('twice')).schema()).rejects.toThrow(
      /two folders of this path name the same column \(a=1\/a=2\/part-0\.csv, column "a"\)/,
    );
    expect(await session.read.csv(path('twice'), { partitions: 'none' }).count()).toBe(1);
    expect(await session.read.csv(path('twice/a=1')).toArray()).toEqual([{ v: 5, a: 2 }]);
  });

  it('name a column that is in the files too', async () => {
    mkdirSync(path('both/v=1'), { recursive: true });
    writeFileSync(path('both/v=1/part-0.csv'), 'v\n5\n');
    await expect(session.read.csv(path('both')).toArray()).rejects.toThrow(
      /the column is in the files and in the names of their folders \(.*part-0\.csv, column "v"\)\. Name the files in place of their folder/,
    );
    for (const rows of [
      session.read.csv(path('both'), { partitions: 'none' }),
      session.read.csv(path('both/v=1/part-0.csv')),
    ])
      expect(await rows.toArray()).toEqual([{ v: 5 }]);
  });

  it('have values that are not of the type that is given', async () => {
    mkdirSync(path('typed/k=x'), { recursive: true });
    writeFileSync(path('typed/k=x/part-0.csv'), 'v\n1\n');
    const read = (partitions: object) =>
      session.read.csv(path('typed'), { partitions: partitions as never }).schema();
    await expect(read({ k: 'int32' })).rejects.toThrow(
      /the folder's value "x" is no int32 \(.*k=x.*, column "k"\)/,
    );
    await expect(read({ kk: 'int32' })).rejects.toThrow('names a column that no folder has');
    expect(() => session.read.csv('x', { partitions: { k: 'int' } as never })).toThrow(
      'unknown column type "int"',
    );
    expect(() => session.read.csv('x', { partitions: 'off' as never })).toThrow(
      "partitions must be 'infer', 'text', 'none' or types by column, got off",
    );
  });
});

it('a column of folders has its value in every row, of any type', () => {
  const valuesOf = (column: ConstantColumn, rows: number) =>
    Array.from(new Vector([constantData(column, rows)]), (value) => value);
  for (const rows of [0, 1, 2, 7, 1000]) {
    for (const value of ['', 'a', 'é😀', 'abc'.repeat(20)])
      expect(valuesOf({ name: 'c', type: 'utf8', value }, rows)).toEqual(Array(rows).fill(value));
    expect(valuesOf({ name: 'c', type: 'int64', value: '-9223372036854775808' }, rows)).toEqual(
      Array(rows).fill(-(2n ** 63n)),
    );
    expect(valuesOf({ name: 'c', type: 'float32', value: '0.5' }, rows)).toEqual(Array(rows).fill(0.5));
    expect(valuesOf({ name: 'c', type: 'bool', value: 'true' }, rows)).toEqual(Array(rows).fill(true));
    for (const type of ['utf8', 'date', 'int32', 'bool'] as const)
      expect(valuesOf({ name: 'c', type, value: null }, rows)).toEqual(Array(rows).fill(null));
  }
});
