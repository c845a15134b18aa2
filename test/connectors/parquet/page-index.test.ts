/** Filters of Parquet files with page indexes: DuckDB's rows, and no more pages than needed. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { expr } from '../../../api/parse-column.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { ALS, type Dataset, Session } from '../../../index.ts';
import { everyNth } from '../../support/deep.ts';
import { duckdb, duckRows, random } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const golden = join(import.meta.dirname, '../../golden/page-index');
const folder = temporaryFolder();
const ROWS = 100_000;
let session: Session;

beforeAll(async () => {
  session = await cpuSession({ splitBytes: 20_000 });
  // The same rows as the default backend writes them: pages of 20,000 rows, least and greatest texts cut off.
  const rows = await session.read.parquet(join(golden, 'pyarrow-V1.parquet')).drop('d').collect();
  // Tasks would give smaller row groups.
  const stream = session.from(rows.batches, rows.schema);
  await stream.write.parquet(join(folder, 'own.parquet'), { rowGroupSize: ROWS });
  // In tables, since DuckDB leaves out row groups of files although they have NaN.
  for (const name of files)
    await (await duckdb()).run(`CREATE TABLE "${name}" AS SELECT * FROM '${pathOf(name)}'`);
});

const files = ['pyarrow-V1', 'pyarrow-V2', 'own'];
const pathOf = (name: string) => join(name === 'own' ? folder : golden, `${name}.parquet`);
const read = (name: string): Dataset => session.read.parquet(pathOf(name));

/** The number of the kept rows, and a sum over their places that no other rows have. */
async function kept(rows: Dataset): Promise<[number, number]> {
  let [count, sum] = [0, 0];
  for await (const batch of rows.select('i', 'x')) {
    const [i, x] = [batch.getChild('i'), batch.getChild('x')];
    for (let row = 0; row < batch.numRows; row++) sum += i?.get(row) * 3 + (x?.get(row) ?? -1);
    count += batch.numRows;
  }
  return [count, sum];
}

async function duckKept(name: string, condition: string): Promise<[number, number]> {
  const [[count, sum]] = await duckRows(
    `SELECT count(*)::INTEGER, coalesce(sum(i * 3 + coalesce(x, -1)), 0)::DOUBLE FROM "${name}" WHERE ${condition}`,
  );
  return [count as number, sum as number];
}

/** Pages that a plan reads, by `explain`. */
async function pages(rows: Dataset): Promise<string | undefined> {
  return /reads .*row groups?, ([\d,]+ of [\d,]+) pages/.exec(await rows.explain())?.[1];
}

describe.each(files)('%s', (name) => {
  it.each(
    everyNth(
      [
        'i = 5000',
        'i >= 9990',
        'i < 3',
        'i between 5990 and 6010',
        'i in (10, 9000)',
        'i in (10, 9500)',
        'i = 20 or i = 9000',
        'i > 2000 and x > 11000',
        'i = -1',
        'n is null',
        'n is null and i > 3500',
        'n is not null and i < 2600',
        'n = 300',
        'n <> 300',
        'n is not distinct from null',
        'f < -4.5',
        'f >= 44',
        'f > 1000',
        "f = 'NaN'::FLOAT",
        'f = 0',
        'f <= 10 and f > 9.5',
        'x < 100',
        'x is null',
        'u > 2147483648',
        'u <= 2144533648',
        "t = concat('text text text text text text text text text text text text text text text text text text text text text text text text text text text text text text ', '7')",
        "t < 'text text text text text text text text text text text text text text text text text text text text text text text text text text text text text text 11'",
        "ts >= timestamp '1970-03-20 00:00:00'",
        "ts < timestamp '1970-01-03 00:00:00'",
        "ts = timestamp '1970-02-01 00:00:00' or ts is null",
        "ts in (timestamp '1970-02-01', timestamp '1970-03-01')",
        "day <= date '1966-01-04'",
        "day > date '1974-01-01' and day < date '1974-02-01'",
        "day = timestamp '1970-01-01 00:00:00'",
        "ms >= timestamp '1970-01-01 00:00:09.9'",
        "ms < timestamp '1969-12-31 23:59:50'",
        "ns < timestamp '1969-12-31 23:59:59.990'",
        "ns >= timestamp '1970-01-01 00:00:00.009'",
        'i < 100 and n is null and f < 0',
      ],
      3,
      files.indexOf(name),
    ),
  )('%s', async (condition) => {
    const own = condition
      .replace('is not distinct from', '<=>')
      .replace("'NaN'::FLOAT", "cast('NaN' as float)");
    expect(await kept(read(name).filter(expr(own)))).toEqual(await duckKept(name, condition));
  });

  it('nanoseconds, which are rounded down', async () => {
    const rows = read(name).filter(expr("ns = timestamp '1969-12-31 23:59:59.999899'"));
    expect(await rows.count()).toBe(500);
  });

  it('ranges drawn at random', async () => {
    const next = random(7);
    for (let n = 0; n < 6; n++) {
      const [column, most, scale] = [
        ['i', 10_000, 1],
        ['n', 1000, 1],
        ['f', 100, 0.5],
        ['x', 14_000, 0.25],
        ['u', 5_000_000, 1],
      ][next(5)] as [string, number, number];
      const from = next(most) * scale + (column === 'u' ? 2 ** 31 - 3_000_000 : 0);
      const to = from + next(Math.ceil(most / 4)) * scale;
      const condition = `${column} >= ${from} and ${column} < ${to}`;
      expect([condition, await kept(read(name).filter(expr(condition)))]).toEqual([
        condition,
        await duckKept(name, condition),
      ]);
    }
  });
});

describe('pages that are read', () => {
  it('are those within the bounds, as explain says', async () => {
    expect(await pages(read('pyarrow-V1').filter(expr('i between 1000 and 1050')).select('i', 'f'))).toBe(
      '2 of 120',
    );
    expect(await pages(read('own').filter(expr('i = 5000')).select('i'))).toBe('1 of 5');
    expect(await pages(read('own').filter(expr('i in (10, 9500)')).select('i'))).toBe('2 of 5');
    expect(await pages(read('pyarrow-V2').filter(expr("ts < '1970-01-03'")).select('ts'))).toBe('2 of 60');
    expect(await pages(read('pyarrow-V2').filter(expr("day < '1966-01-04'")).select('day'))).toBe('5 of 60');
    expect(await pages(read('own').filter(expr('n is null and i > 9990')))).toBe('0 of 49');
  });

  it('are all of a row group of which most rows are within', async () => {
    expect(await pages(read('own').filter(expr('i >= 100')))).toBeUndefined();
    expect(await pages(read('pyarrow-V1').filter(expr('u > 2147483648')))).toBeUndefined();
  });

  it('are all of them for a backend that reads whole row groups', async () => {
    const bound = {
      column: 'i',
      operator: '=',
      values: [{ kind: 'literal', type: 'int32', value: 5000 }],
    } as const;
    const parts = (source: ParquetSource) => source.within([bound]).parts(['i']);
    const rowGroups = { unit: 'row group', by: 'statistics', read: 1, all: 1 };
    expect(await parts(new ParquetSource(pathOf('own'), { backend: 'parquetjs-lite' }))).toEqual([rowGroups]);
    expect(await parts(new ParquetSource(pathOf('own')))).toEqual([
      rowGroups,
      { unit: 'page', by: 'statistics', read: 1, all: 5 },
    ]);
  });

  it('come from ranges of rows that know their places', async () => {
    const failing = read('own').filter(expr('i = 5000 and cast(t as int) > 1'));
    await expect(failing.count()).rejects.toThrow(/own\.parquet.*row group 0, row 50001/);
  });
});

it('ratings on some pages train the model of the same ratings in a file of their own', async () => {
  const some = read('pyarrow-V2')
    .filter(expr('i >= 2500 and i < 4500'))
    .select(expr('i % 83').as('user'), expr('i').as('item'), expr('n / 100').as('rating'))
    .dropNulls();
  expect(await pages(some)).toBe('40 of 120');
  const path = join(folder, 'ratings.parquet');
  await some.write.parquet(path);
  const als = new ALS({ rank: 4, maxIter: 2, seed: 1, onDuplicates: 'sum' });
  const losses = async (rows: Dataset) => (await als.fit(rows)).training?.iterations.map(({ loss }) => loss);
  expect(await losses(some)).toEqual(await losses(session.read.parquet(path)));
});

it('a damaged page index leaves the rows as they are', async () => {
  const whole = join(folder, 'numbers.parquet');
  const writer = await cpuSession({ workers: 1 });
  await writer.read.parquet(pathOf('own')).select('i').write.parquet(whole, { rowGroupSize: ROWS });
  const reader = await (await parquetBackend()).open(whole);
  const { pageIndex } = reader.info.rowGroups[0].columns[0];
  await reader.close();
  for (const part of ['values', 'pages'] as const)
    for (const fill of [0, 255]) {
      const path = join(folder, `damaged-${part}-${fill}.parquet`);
      const { at, bytes } = pageIndex?.[part] ?? { at: 0, bytes: 0 };
      expect(bytes).toBeGreaterThan(0);
      writeFileSync(path, readFileSync(whole).fill(fill, at, at + bytes));
      const rows = session.read.parquet(path).filter(expr('i = 5000'));
      expect([await pages(rows), await rows.count()]).toEqual([undefined, 10]);
    }
});
