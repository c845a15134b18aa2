/**
 * The whole text of `explain` for typical plans, in test/golden/explain. After an intended change: `npx
 * vitest run test/api/rows/explain.test.ts -u`, then read the diff.
 */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { col, type Dataset, functions } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const module = new URL('clean.ts', import.meta.url).href;
const indexed = join(import.meta.dirname, '../../golden/page-index/pyarrow-V1.parquet');
const ROWS = 20_000;
let rows: Dataset;
let csv: Dataset;

const session = await cpuSession({ workers: 4, splitBytes: 20_000 });
const few = await cpuSession({ splitBytes: 20_000 });
beforeAll(async () => {
  const line = (i: number) => `${i},${i % 100},${(i % 7) / 2},${i % 5 === 0 ? '' : `t${i % 3}`}\n`;
  const lines = Array.from({ length: ROWS }, (_, i) => line(i));
  writeFileSync(join(folder, 'rows.csv'), `i,user,x,t\n${lines.join('')}`);
  csv = session.read.csv(join(folder, 'rows.csv'), { types: { x: 'float64' } });
  // Tasks of so few bytes would give smaller row groups.
  const writer = await cpuSession({ workers: 1 });
  await writer.read
    .csv(join(folder, 'rows.csv'), { types: { x: 'float64' } })
    .write.parquet(join(folder, 'rows.parquet'), { rowGroupSize: 2000 });
  rows = session.read.parquet(join(folder, 'rows.parquet'));
  writeFileSync(join(folder, 'small.csv'), 'user,title\n1,one\n2,two\n');
  const inFolders = writer.fromRows(
    Array.from({ length: 1000 }, (_, i) => ({
      i,
      year: 1990 + (i % 10),
      genre: i % 3 === 0 ? 'Drama' : null,
    })),
  );
  await inFolders.write.partitionBy('year', 'genre').parquet(join(folder, 'folders'));
  await inFolders.write.partitionBy('year').csv(join(folder, 'text-folders'));
});

/** The sizes of files differ from machine to machine, as compressors do. */
const steady = (text: string) =>
  text
    .replaceAll(folder, '/data')
    .replaceAll(dirname(indexed), '/data')
    .replace(/[\d.]+ (bytes|KiB|MiB)/g, 'N $1');

it.each<[string, () => Dataset]>([
  ['file alone', () => rows],
  ['filter in Parquet', () => rows.filter(col('i').ge(15_000).and(col('x').gt(1))).select('i', 'x')],
  [
    'filter in pages of Parquet',
    () => session.read.parquet(indexed).filter(col('i').between(1000, 1050)).select('i', 'f'),
  ],
  ['filter that excludes no row group', () => rows.filter(col('user').lt(3))],
  ['filter without a constant', () => rows.filter(col('i').plus(col('user')).ge(15_000))],
  ['filter after limit', () => rows.limit(12_000).filter(col('i').ge(10_000))],
  [
    'projections',
    () =>
      rows
        .withColumn('y', col('x').times(2))
        .withColumn('z', functions.log1p(col('y')))
        .drop('t', 'x')
        .withColumnRenamed('i', 'id'),
  ],
  ['limit through projection', () => rows.withColumn('y', col('x').times(2)).limit(10)],
  ['sorted', () => rows.orderBy('user', col('x').desc().nullsFirst()).filter(col('i').lt(10))],
  [
    'first of sorted by an expression',
    () => rows.orderBy(col('x').times(2).desc(), 'i').limit(10).select('i'),
  ],
  ['first of sorted CSV', () => csv.orderBy('x').limit(10)],
  ['union', () => rows.select('i', 'x').union(csv.select('i', 'x')).filter(col('i').lt(10))],
  [
    'join',
    () =>
      rows
        .join(csv.select(col('i').as('id'), col('t').as('title')), { left: 'i', right: 'id' }, 'left')
        .filter(col('user').lt(10))
        .select('user', 'title'),
  ],
  [
    'join with a few rows',
    () =>
      rows.join(
        rows.limit(100).select(col('i').as('id'), col('t').as('title')),
        { left: 'i', right: 'id' },
        'left',
      ),
  ],
  [
    'join with a small file',
    () => rows.join(session.read.csv(join(folder, 'small.csv')), 'user').select('i', 'title'),
  ],
  [
    'groups of a union',
    () => rows.select('i', 'user').union(csv.select('i', 'user')).groupBy('user').count(),
  ],
  ['sample and dropped nulls', () => rows.dropNulls('t').sample(0.1, { seed: 3, by: ['user'] })],
  ['closure', () => rows.mapBatches((batch) => batch).filter(col('x').gt(1))],
  ['module', () => rows.mapBatches({ module, name: 'doubled' }).filter(col('x').gt(1))],
  ['CSV with a filter', () => csv.filter(col('x').gt(1)).select('i')],
  ['CSV with a closure', () => csv.filter(col('x').gt(1)).mapBatches((batch) => batch)],
  [
    'operators that do nothing',
    () =>
      rows
        .select('i', 'user', 'x', 't')
        .sample(1)
        .filter(functions.coalesce(col('i'), 1).isNotNull()),
  ],
  [
    'filter by names of folders',
    () =>
      session.read
        .parquet(join(folder, 'folders'))
        .filter(col('year').ge(1998).and(col('genre').isNull()).and(col('i').lt(500))),
  ],
  [
    'filter by folders alone',
    () =>
      session.read
        .parquet(join(folder, 'folders'))
        .filter(col('year').eq(1990).or(col('year').times(2).gt(3994)))
        .select('genre'),
  ],
  [
    'filter that excludes all folders',
    () => session.read.parquet(join(folder, 'folders')).filter(col('year').lt(0)),
  ],
  [
    'filter that excludes no folder',
    () => session.read.csv(join(folder, 'text-folders')).filter(col('year').gt(0)),
  ],
  [
    'filter by names of folders of CSV',
    () => session.read.csv(join(folder, 'text-folders')).filter(col('year').isIn(1991, 1992)),
  ],
  [
    'rows in memory',
    () =>
      session
        .fromRows([{ a: 1 }, { a: 2 }])
        .filter(col('a').gt(1))
        .limit(1),
  ],
  ['few threads', () => few.read.parquet(join(folder, 'rows.parquet'))],
])('%s', async (name, make) => {
  const golden = join(import.meta.dirname, '../../golden/explain', `${name.replaceAll(' ', '-')}.txt`);
  await expect(steady(await make().explain())).toMatchFileSnapshot(golden);
});
