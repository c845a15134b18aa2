/** Groups of rows from files, by several threads and exchanges, compared with DuckDB's groups. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  col,
  collectList,
  collectSet,
  count,
  countDistinct,
  DataError,
  type Dataset,
  first,
  functions,
  last,
  max,
  maxBy,
  mean,
  median,
  min,
  minBy,
  quantile,
  stddev,
  sum,
  UsageError,
} from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = join(folder, 'rows.parquet');
const ROWS = 15_000;
const sessions = [
  await cpuSession({ workers: 1, splitBytes: 20_000 }),
  await cpuSession({ workers: 3, splitBytes: 20_000 }),
];

/** A user with half of the rows; ids beyond 2^53, nulls, NaN and both zeros. */
function* rows() {
  for (let i = 0; i < ROWS; i++) {
    const user = i % 2 === 0 ? 7 : (i * 31) % 997;
    const big = 2n ** 60n + BigInt(i % 13);
    const value = i % 11 === 0 ? null : [0, -0, Number.NaN, 1.5, -2][i % 5];
    yield { row: i, user, item: i % 101, big, value, word: i % 17 === 0 ? null : `w${(i * 7) % 23}` };
  }
}

beforeAll(async () => {
  const types = { row: 'int32', user: 'int32', item: 'int32', big: 'int64', value: 'float64' } as const;
  await sessions[0]
    .fromRows([...rows()])
    .cast(types)
    .write.parquet(path, { rowGroupSize: 1000 });
});

const plain = (value: unknown): unknown => {
  if (typeof value === 'number') return value + 0;
  if (typeof value !== 'object' || value === null) return value;
  return Symbol.iterator in value ? Array.from(value as Iterable<unknown>, plain) : value;
};

/** The rows by each session, in the order of their text. */
async function compare(make: (table: Dataset) => Dataset, query: string): Promise<void> {
  const wanted = (await duckRows(query.replaceAll(/\brows\b/g, `read_parquet('${path}')`))).map((row) =>
    row.map((cell) => text(plain(cell))),
  );
  const orders = new Set<string>();
  for (const session of sessions) {
    const made = make(session.read.parquet(path));
    const found = (await made.toArray()).map((row) => Object.values(row).map((cell) => text(plain(cell))));
    expect(found.map(String).toSorted(), query).toEqual(wanted.map(String).toSorted());
    expect(await made.count()).toBe(wanted.length);
    orders.add(JSON.stringify(found));
  }
  // The same order with any number of threads.
  expect(orders.size).toBe(1);
}

const text = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(text).join()}]`;
  return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(12) : String(value);
};

describe('groups', () => {
  it('by one key, with all aggregates', () =>
    compare(
      (table) =>
        table
          .groupBy('user')
          .agg(
            count(),
            count('value').as('values'),
            countDistinct('word'),
            sum('item'),
            mean('item').as('average'),
            min('big'),
            max('value'),
            stddev('item'),
            first('word'),
            last('row').as('last'),
          ),
      `SELECT "user", count(*), count(value), count(DISTINCT word), sum(item)::BIGINT, avg(item), min(big), max(value),
        stddev_samp(item), first(word ORDER BY row), max(row) FROM rows GROUP BY "user"`,
    ));

  it('with aggregates of several values of a group', () =>
    compare(
      (table) =>
        table
          .groupBy('user')
          .agg(
            collectSet('item').as('items'),
            median('value').as('median'),
            quantile(col('item').plus(0.5), 0.9),
            minBy('word', 'item').as('least'),
            maxBy(col('row').times(2), col('value').times(1)),
          ),
      `SELECT "user", list_filter(list(item ORDER BY row), lambda x, i: list_position(list(item ORDER BY row), x) = i),
        quantile_cont(value, 0.5), quantile_cont(item + 0.5::DOUBLE, 0.9), arg_min(word, item ORDER BY row),
        arg_max(row * 2, value ORDER BY row)::BIGINT FROM rows GROUP BY "user"`,
    ));

  it('by floats with NaN and both zeros', () => {
    const key = 'value';
    return compare(
      (table) => table.groupBy(key).agg(collectList('item').as('items'), sum('row')),
      `SELECT ${key}, list(item ORDER BY row), sum(row)::BIGINT FROM rows GROUP BY ${key}`,
    );
  });

  it('by several keys and expressions, one of which takes the name of a column', () =>
    compare(
      (table) =>
        table
          .groupBy(col('row').mod(7).as('row'), functions.upper(col('word')).as('word'), 'item')
          .agg(max('row'), countDistinct(col('big').minus(1)).as('bigs')),
      `SELECT row % 7, upper(word), item, max(row), count(DISTINCT big) FROM rows GROUP BY row % 7, upper(word), item`,
    ));

  it('of all rows', () =>
    compare(
      (table) => table.filter(col('item').gt(3)).groupBy().agg(count(), sum('item'), mean('row')),
      'SELECT count(*), sum(item)::BIGINT, avg(row) FROM rows WHERE item > 3',
    ));

  it('of groups, filtered', () =>
    compare(
      (table) => table.groupBy('user', 'item').count().filter(col('count').ge(3)).groupBy('user').count(),
      `SELECT "user", count(*) FROM (SELECT "user", item FROM rows GROUP BY "user", item HAVING count(*) >= 3) GROUP BY "user"`,
    ));
});

describe('a pivot', () => {
  const events = () =>
    sessions[1].fromRows([
      { user: 1, kind: 'view', n: 1 },
      { user: 1, kind: 'buy', n: 2 },
      { user: 2, kind: null, n: 3 },
      { user: 1, kind: 'view', n: 5 },
    ]);

  it('finds its values in ascending order, or takes them', async () => {
    const found = await events().groupBy('user').pivot('kind').agg(sum('n'));
    expect(await found.orderBy('user').toArray()).toEqual([
      { user: 1, null: null, buy: 2n, view: 6n },
      { user: 2, null: 3n, buy: null, view: null },
    ]);
    const given = events().groupBy('user').pivot('kind', ['view']).agg(count(), max('n').as('most'));
    expect(await given.orderBy('user').toArray()).toEqual([
      { user: 1, view_count: 2n, view_most: 5 },
      { user: 2, view_count: null, view_most: null },
    ]);
  });

  it('refuses more than 1,000 values that it finds', async () => {
    const made = sessions[0].read.parquet(path).groupBy('user').pivot('row').agg(count());
    await expect(made).rejects.toThrow('pivot by row finds more than 1,000 values');
    expect(() => events().groupBy('user').pivot('kind', [])).toThrow('the values of pivot must be a list');
    expect(() => events().groupBy('user').pivot('kind', ['a', NaN, 'a'])).toThrow('the value "a" twice');
  });
});

describe('distinct rows', () => {
  it('of all columns', () =>
    compare(
      (table) => table.select('user', 'value').distinct(),
      'SELECT DISTINCT "user", CASE WHEN value = 0 THEN 0 ELSE value END FROM rows',
    ));

  it('by keys, each the first in the order of the rows', () =>
    compare(
      (table) => table.dropDuplicates('word', 'big').select('row', 'word', 'big'),
      'SELECT min(row), word, big FROM rows GROUP BY word, big',
    ));

  it('of few rows, which the calling thread has, are collected with the columns of the data set', async () => {
    const few = sessions[0].fromRows([
      { user: 1, at: new Date(0) },
      { user: null, at: null },
      { user: 1, at: new Date(0) },
    ]);
    expect(await few.distinct().toArray()).toEqual([
      { user: 1, at: new Date(0) },
      { user: null, at: null },
    ]);
    const [batch] = (await few.distinct().collect()).batches;
    expect(batch.schema.fields.map(({ type }) => type)).toEqual(
      (await few.schema()).fields.map(({ type }) => type),
    );
  });
});

describe('refuses', () => {
  const table = () => sessions[0].read.parquet(path);

  it.each<[string, () => unknown, string]>([
    [
      'columns in place of aggregates',
      () =>
        table()
          .groupBy('user')
          .agg(col('item') as never),
      "agg takes aggregates such as mean('rating').as('average'), got an object",
    ],
    ['a key twice', () => table().groupBy('user', col('user')), 'groupBy: the key "user" is named twice'],
    [
      'other columns to repartition by',
      () => table().repartition(2, col('user') as never),
      'repartition takes names of columns, got an object of class Column',
    ],
    ['a quantile beyond 1', () => quantile('item', 90), 'the p of quantile must be from 0 to 1, got 90'],
    ['no value to choose by', () => minBy('item', undefined as never), 'minBy takes the name of a column'],
    ['other values', () => sum(3 as never), 'sum takes the name of a column or an expression, got 3'],
    [
      'a name twice',
      () => table().groupBy('user').agg(count(), sum('item').as('count')),
      'the result would have the column "count" twice',
    ],
  ])('%s', (_, run, message) => {
    expect(run).toThrow(UsageError);
    expect(run).toThrow(message);
  });

  it.each<[string, (own: Dataset) => Dataset, string]>([
    [
      'an unknown key',
      (own) => own.groupBy('usr').count(),
      'there is no column "usr" to group by. Did you mean user?',
    ],
    [
      'an unknown value',
      (own) => own.groupBy('user').agg(sum('itm')),
      'there is no column "itm". Did you mean item?',
    ],
  ])('%s, when it is run', async (_, make, message) => {
    const error = await make(table())
      .toArray()
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).message).toContain(message);
    await expect(make(table()).schema()).rejects.toThrow(UsageError);
  });

  it('sums beyond int64, in tasks too', async () => {
    for (const session of sessions)
      await expect(session.read.parquet(path).groupBy().agg(sum('big')).toArray()).rejects.toThrow(DataError);
  });
});
