/** Types of rows, which the compiler checks: `npm run typecheck` fails where one does not hold. */
import { expect, expectTypeOf, it } from 'vitest';
import { ALS, col, count, type Dataset, lag, max, mean, type RowOf, rowNumber, sum } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const types = { user: 'int64', item: 'utf8', stars: 'float32' } as const;
type Play = RowOf<typeof types>;
interface Film {
  readonly id: string;
  readonly title: string;
}

const session = await cpuSession({ workers: 1 });
const plays = session.fromRows<Play>(
  [
    { user: 1n, item: 'a', stars: 3 },
    { user: 1n, item: 'b', stars: null },
  ],
  { types },
);
const films = session.fromRows<Film>([{ id: 'a', title: 'Heat' }]);

/** Checks the type of a data set's rows, and that the rows have the type's keys. Returns the rows. */
const rowsOf = async <Row extends object>(rows: Dataset<Row>) => rows.toArray();

it('follow each method', async () => {
  const selected = plays.select('user', col('stars').cast('float64').as('x'));
  expectTypeOf(await rowsOf(selected)).toEqualTypeOf<{ user: bigint | null; x: number | null }[]>();
  expect(await rowsOf(selected.limit(1))).toEqual([{ user: 1n, x: 3 }]);

  const changed = plays
    .withColumn('good', col('stars').ge(3))
    .withColumns({ kind: col<'item', string>('item'), stars: col('stars').cast('int32') })
    .drop('item')
    .withColumnRenamed('user', 'who')
    .dropNulls('stars')
    .orderBy('who', { column: 'stars', descending: true });
  expectTypeOf(await rowsOf(changed)).toEqualTypeOf<
    { who: bigint | null; good: boolean | null; kind: string; stars: number }[]
  >();
  expect(await rowsOf(changed)).toEqual([{ stars: 3, who: 1n, good: true, kind: 'a' }]);

  const groups = plays
    .groupBy('user')
    .agg(count(), mean('stars').as('average'), max<string>('item').as('top'));
  expectTypeOf(await rowsOf(groups)).toEqualTypeOf<
    { user: bigint | null; count: bigint; average: number | null; top: string | null }[]
  >();
  expect(await rowsOf(groups)).toEqual([{ user: 1n, count: 2n, average: 3, top: 'b' }]);
  const all = plays.fillNulls({ stars: 0 }).cast({ user: 'int32' }).groupBy().count();
  expectTypeOf(await all.first()).toEqualTypeOf<{ count: bigint } | undefined>();

  const byUser = { partitionBy: 'user', orderBy: 'item' } as const;
  const windows = plays
    .filter(rowNumber().over(byUser).le(2))
    .select('user', lag(col<'item', string | null>('item')).over(byUser).as('before'))
    .withColumn('n', count().over({ partitionBy: 'user' }))
    .withColumn('more', sum('n').over({}).gt(1));
  expectTypeOf(await rowsOf(windows)).toEqualTypeOf<
    { user: bigint | null; before: string | null; n: bigint; more: boolean | null }[]
  >();
  expect(await rowsOf(windows.filter(col('before').isNull()))).toEqual([
    { user: 1n, before: null, n: 2n, more: true },
  ]);

  const on = { left: 'item', right: 'id' } as const;
  expectTypeOf(await rowsOf(plays.join(films, on))).toEqualTypeOf<
    { user: bigint | null; item: string | null; stars: number | null; readonly title: string }[]
  >();
  const left = plays.join(films, on, 'left').select('item', 'title').orderBy('item');
  expectTypeOf(await rowsOf(left)).toEqualTypeOf<{ item: string | null; title: string | null }[]>();
  expect(await rowsOf(left)).toEqual([
    { item: 'a', title: 'Heat' },
    { item: 'b', title: null },
  ]);
  expectTypeOf(plays.join(films, on, { how: 'anti' })).toEqualTypeOf<Dataset<Play>>();
  expectTypeOf(plays.join(films, on, { suffix: '_r' })).toEqualTypeOf<Dataset>();
  expectTypeOf(plays.randomSplit([1, 1])[0].union(plays).distinct().cache()).toEqualTypeOf<Dataset<Play>>();
});

it('refuse names that rows do not have, as running does', () => {
  const wrong = [
    // @ts-expect-error No such column.
    plays.select('usr'),
    // @ts-expect-error No such column.
    plays.drop('usr'),
    // @ts-expect-error No such column.
    plays.withColumnRenamed('usr', 'user'),
    // @ts-expect-error No such column.
    plays.cast({ usr: 'int32' }),
    // @ts-expect-error No such column.
    plays.dropNulls('usr'),
    // @ts-expect-error No such column.
    plays.fillNulls({ usr: 0 }),
    // @ts-expect-error No such column.
    plays.orderBy('usr'),
    // @ts-expect-error No such column.
    plays.dropDuplicates('usr'),
    // @ts-expect-error No such column.
    plays.repartition(2, 'usr'),
    // @ts-expect-error No such column.
    plays.groupBy('usr').count(),
    // @ts-expect-error The films have no user.
    plays.join(films, 'user'),
    // @ts-expect-error Rows of other columns.
    plays.union(films),
    // @ts-expect-error The column was dropped.
    plays.drop('item').select('item'),
  ];
  return Promise.all(wrong.map((rows) => expect(rows.collect()).rejects.toThrow()));
});

it('are unknown without a type, and stay so', () => {
  const loose: Dataset = session.fromRows([{ user: 1, item: 'a' }]);
  let rows = loose.select('item');
  rows = rows.withColumn('x', col('item')).select('x').join(loose, 'x', 'left').groupBy('y').agg(mean('z'));
  expectTypeOf(rows).toEqualTypeOf<Dataset>();
  expectTypeOf(rows.toArray).returns.resolves.toEqualTypeOf<Record<string, unknown>[]>();
  // A function of any data set accepts one with known columns.
  expectTypeOf(new ALS().fit).toBeCallableWith(plays);
  expectTypeOf(new ALS().fit).toBeCallableWith(films);
  expectTypeOf(films.join(loose, 'id')).toEqualTypeOf<Dataset>();
});
