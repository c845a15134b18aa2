/** Window functions give DuckDB's values: in several parts, with ties, nulls and NaN. */
import { type RecordBatch, Table, vectorFromArray } from 'apache-arrow';
import { expect, it, vi } from 'vitest';
import { exchangeRoomOf } from '../../../api/run-rows.ts';
import {
  andThen,
  executePlan,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
} from '../../../engine/stream/logical-plan.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { ExchangedRows } from '../../../operators/exchange/exchanged-rows.ts';
import { RowOperator } from '../../../operators/dataflow/row-operator.ts';
import { WindowRows } from '../../../operators/dataflow/window/window-rows.ts';
import { Wide, Windows } from '../../../operators/exchange/wide-operators.ts';
import {
  col,
  count,
  denseRank,
  first,
  lag,
  last,
  lead,
  max,
  mean,
  min,
  rank,
  rowNumber,
  Session,
  sessionNumber,
  sum,
} from '../../../index.ts';
import type { Column, Dataset } from '../../../index.ts';
import { dirname, join } from 'node:path';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { drawnNumbers } from '../../support/drawn-numbers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const random = drawnNumbers();
const drawn = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)];
const session = await cpuSession({ workers: 3, splitBytes: 4000 });

const rows = Array.from({ length: 2000 }, (_, id) => ({
  id,
  p: drawn([1, 2, 3, null, 5, 6]),
  k: drawn([null, Number.NaN, Infinity, ...Array.from({ length: 40 }, (_, i) => i / 2)]),
  v: drawn([null, -3, 4, 7, 2 ** 40]),
  s: drawn([null, 'Alien', 'Aliens, the second part of four', 'Aliens, the second part of five']),
  n: drawn([null, 0, 1, 2, -1]),
}));

const by = { partitionBy: 'p', orderBy: ['k', 'id'] };
const falling = { partitionBy: 'p', orderBy: col('k').desc() };
const rising = { partitionBy: 'p', orderBy: 'k' };
const p = 'PARTITION BY p ORDER BY k NULLS FIRST';
const down = 'PARTITION BY p ORDER BY k DESC NULLS LAST';

/** Each function, and DuckDB's. */
const cases: readonly (readonly [Column, string])[] = [
  [rowNumber().over(by), `row_number() OVER (${p}, id)`],
  [rank().over(rising), `rank() OVER (${p})`],
  [denseRank().over(falling), `dense_rank() OVER (${down})`],
  [rowNumber().over({ orderBy: 'id' }), 'row_number() OVER (ORDER BY id)'],
  [sessionNumber('id', 9).over({ partitionBy: 'p', orderBy: 'id' }), 'c'],
  [lag('s').over(by), `lag(s) OVER (${p}, id)`],
  [lag('v', 3, { ignoreNulls: true }).over(by), `lag(v, 3 IGNORE NULLS) OVER (${p}, id)`],
  [lead('v', 2, { ignoreNulls: true, default: 0 }).over(by), `lead(v, 2, 0 IGNORE NULLS) OVER (${p}, id)`],
  [lead('k', col('n'), { default: col('k').plus(1) }).over(by), `lead(k, n, k + 1) OVER (${p}, id)`],
  [sum('v').over(by), `sum(v) OVER (${p}, id)`],
  [sum('v').over({ partitionBy: 'p' }), 'sum(v) OVER (PARTITION BY p)'],
  [min('s').over({ partitionBy: ['p', 's'] }), 'min(s) OVER (PARTITION BY p, s)'],
  [max('id').over({}), 'max(id) OVER ()'],
  [
    last('id').over({ ...by, rows: [-Infinity, Infinity] }),
    `last(id) OVER (${p}, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)`,
  ],
  [
    sum('k').over({ ...by, rows: [-20, 20] }),
    `sum(k) OVER (${p}, id ROWS BETWEEN 20 PRECEDING AND 20 FOLLOWING)`,
  ],
  [
    mean('v').over({ ...by, rows: [2, Infinity] }),
    `avg(v) OVER (${p}, id ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING)`,
  ],
  [
    count('v').over({ ...by, rows: [-3, -1] }),
    `count(v) OVER (${p}, id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)`,
  ],
  [
    min('v').over({ ...by, rows: [-2, 2] }),
    `min(v) OVER (${p}, id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)`,
  ],
  [max('s').over(rising), `max(s) OVER (${p})`],
  [
    max('k').over({ ...by, rows: [-1, 1] }),
    `max(k) OVER (${p}, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)`,
  ],
  [
    first('v').over({ ...by, rows: [1, 3] }),
    `first(v) OVER (${p}, id ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)`,
  ],
  [
    last('id').over({ ...by, rows: [-2, 0] }),
    `last(id) OVER (${p}, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)`,
  ],
  [count().over(rising), `count(*) OVER (${p})`],
  [
    min('s').over({ ...by, rows: [-Infinity, -3] }),
    `min(s) OVER (${p}, id ROWS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING)`,
  ],
  [
    max('v').over({ ...by, rows: [-Infinity, 1] }),
    `max(v) OVER (${p}, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)`,
  ],
  [
    first('s').over({ ...by, rows: [-Infinity, -2] }),
    `first(s) OVER (${p}, id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)`,
  ],
  [mean('v').over(rising), `avg(v) OVER (${p})`],
  [last('k').over(falling), `last(k) OVER (${down})`],
  [sum('k').over(by), `sum(k) OVER (${p}, id)`],
  [
    sum('v').over({ ...falling, range: [-Infinity, 1.5] }),
    `sum(v) OVER (${down} RANGE BETWEEN UNBOUNDED PRECEDING AND 1.5 FOLLOWING)`,
  ],
  [lag('id', -2).over(by), `lead(id, 2) OVER (${p}, id)`],
  [
    count().over({ ...rising, range: [-1.5, 1] }),
    `count(*) OVER (${p} RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING)`,
  ],
  [
    sum('v').over({ ...falling, range: [-2, Infinity] }),
    `sum(v) OVER (${down} RANGE BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING)`,
  ],
  [
    count('v').over({ ...falling, range: [1, 3] }),
    `count(v) OVER (${down} RANGE BETWEEN 1 FOLLOWING AND 3 FOLLOWING)`,
  ],
  [
    min('id').over({ ...rising, range: [-Infinity, -1] }),
    `min(id) OVER (${p} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`,
  ],
];

async function allOf(stream: BatchStream): Promise<RecordBatch[]> {
  const batches: RecordBatch[] = [];
  for await (const batch of stream) batches.push(batch);
  return batches;
}

const named = Object.fromEntries(cases.map(([column], i) => [`c${i}`, column]));

/** The same rows in batches of few rows, some of them empty. */
class FewRows extends RowOperator {
  readonly name = 'few-rows';
  readonly #rows: number;
  constructor(rows: number) {
    super();
    this.#rows = rows;
  }
  describe() {
    return {};
  }
  async *batches(input: BatchStream) {
    for await (const batch of input)
      for (let from = 0; from < batch.numRows; from += this.#rows) {
        yield batch.slice(from, from + this.#rows);
        yield batch.slice(0, 0);
      }
  }
}

/** The plan with its windows in the calling thread, where they hold few rows at a time. */
function inFewRows(plan: LogicalPlan, held: number): LogicalPlan {
  const source = rootSource(plan);
  if (!(source instanceof Wide && source.operator instanceof Windows))
    return operatorsOf(plan).reduce(andThen, fromSource(source));
  const few = source.operator.after.flatMap((one) =>
    one instanceof WindowRows ? [new FewRows(held), new WindowRows(one.options, { rows: held })] : [one],
  );
  const input = inFewRows(source.inputs[0], held);
  return [...few, ...operatorsOf(plan)].reduce(andThen, input);
}

/** Window functions over parts that are too large for a task, which are sorted by an exchange through files. */
async function inLargeParts(path: string) {
  const options = { device: 'cpu', workers: 2, splitBytes: 1500, spillDir: dirname(path) } as const;
  await using small = await Session.create(options);
  vi.spyOn(exchangeRoomOf(small), 'take').mockReturnValue(false);
  const held = vi.spyOn(ExchangedRows.prototype, 'streamed');
  const found = await small.read.parquet(path).withColumns(named).orderBy('id').toArray();
  expect(held).toHaveBeenCalled();
  vi.restoreAllMocks();
  return found;
}

const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : (value ?? null));

it('functions and frames', async () => {
  const path = join(temporaryFolder(), 'rows.parquet');
  await session.fromRows(rows).write.parquet(path, { rowGroupSize: 150 });
  const duck = await duckdb();
  await duck.run(`CREATE OR REPLACE TABLE of_windows AS SELECT * FROM '${path}'`);
  const sqls = cases.map(([, sql]) => sql);
  const sessions = `SELECT *, 1 + count(*) FILTER (WHERE gap) OVER (PARTITION BY p ORDER BY id) AS c
    FROM (SELECT *, id - lag(id) OVER (PARTITION BY p ORDER BY id) > 9 AS gap FROM of_windows)`;
  const wanted = await duckRows(
    `SELECT ${sqls.map((sql) => `(${sql})::VARCHAR`).join(', ')} FROM (${sessions}) ORDER BY id`,
  );
  const table = session.read.parquet(path);
  const found = await table.withColumns(named).orderBy('id').toArray();
  const texts = (value: unknown) => (value === null ? null : value);
  for (const [i, sql] of sqls.entries()) {
    const own = found.map((row) => texts(plain(row[`c${i}`])));
    const theirs = wanted.map((row) => texts(row[i]));
    const asOwn = theirs.map((cell, row) =>
      typeof own[row] === 'number' && cell !== null ? Number(String(cell).replace('inf', 'Infinity')) : cell,
    );
    expect(own, sql).toEqual(asOwn);
  }
  for (const [i, [column]] of cases.entries()) {
    const { plan } = session.fromRows(rows).withColumn('c', column).orderBy('id');
    const some = new Table(await allOf(await executePlan(inFewRows(plan, 5), session.context())));
    const wanted = found.map((row) => plain(row[`c${i}`]));
    expect(Array.from(some.getChild('c')!, plain), `${sqls[i]}, few rows at a time`).toEqual(wanted);
  }
  const large = await inLargeParts(path);
  for (const [i, sql] of sqls.entries())
    expect(
      large.map((row) => row[`c${i}`]),
      `${sql}, in large parts`,
    ).toEqual(found.map((row) => row[`c${i}`]));
  const firsts = table.withColumn('n', rowNumber().over(by)).filter(col('n').le(2).and(col('p').gt(1)));
  const all = await duckRows(
    `SELECT count(*) FROM of_windows WHERE p > 1 QUALIFY row_number() OVER (${p}, id) <= 2`.replace(
      'count(*)',
      'id',
    ),
  );
  expect(await firsts.count()).toBe(all.length);
  // A limit that moved below the window would count the limited rows of each partition.
  const limited = await table
    .withColumn('n', count().over({ partitionBy: 'p' }))
    .limit(5)
    .toArray();
  expect(limited).toHaveLength(5);
  for (const { p, n } of limited) expect(plain(n)).toBe(rows.filter((row) => row.p === p).length);
  const text = await firsts.explain();
  expect(text).toMatch(/exchange by hash of p/);
});

/** Plans with window functions inside expressions, and DuckDB's. */
const inside: Readonly<Record<string, readonly [(table: Dataset) => Dataset, string]>> = {
  select: [
    (table) => table.select('id', lag('id').over(by).as('before'), rowNumber().over(by).times(2).as('n')),
    `SELECT id, lag(id) OVER (${p}, id) AS before, row_number() OVER (${p}, id) * 2 AS n FROM of_windows`,
  ],
  share: [
    (table) =>
      table
        .withColumn(
          'p',
          col('id')
            .divide(sum('id').over({ partitionBy: 'p' }))
            .gt(0.01),
        )
        .select('id', 'p'),
    'SELECT id, id / sum(id) OVER (PARTITION BY p) > 0.01 AS p FROM of_windows',
  ],
  filter: [
    (table) => table.filter(rowNumber().over(by).le(3).and(col('v').gt(0))).select('id'),
    `SELECT id FROM of_windows QUALIFY row_number() OVER (${p}, id) <= 3 AND v > 0`,
  ],
  'two windows in a filter': [
    (table) =>
      table.filter(
        col('id')
          .eq(max('id').over({ partitionBy: 'p' }))
          .or(rank().over(rising).eq(1)),
      ),
    `SELECT * FROM of_windows QUALIFY id = max(id) OVER (PARTITION BY p) OR rank() OVER (${p}) = 1`,
  ],
  orderBy: [
    (table) => table.orderBy(rowNumber().over(by).desc(), 'id').limit(9).select('id'),
    `SELECT id FROM of_windows ORDER BY row_number() OVER (${p}, id) DESC, id LIMIT 9`,
  ],
  'groups by a window': [
    (table) =>
      table.groupBy(rank().over(rising).as('r')).agg(count().as('n'), sum(rowNumber().over(by)).as('s')),
    `SELECT r, count(*) AS n, sum(n)::BIGINT AS s FROM
      (SELECT rank() OVER (${p}) AS r, row_number() OVER (${p}, id) AS n FROM of_windows) GROUP BY r`,
  ],
  'a window of windows': [
    (table) =>
      table.select(
        'id',
        sum(col('id').minus(lag('id', 1, { default: rank().over(rising) }).over(by)))
          .over({ partitionBy: denseRank().over(rising).mod(3), orderBy: ['id'] })
          .as('s'),
      ),
    `SELECT id, sum(d) OVER (PARTITION BY r ORDER BY id)::BIGINT AS s FROM
      (SELECT id, id - coalesce(lag(id) OVER (${p}, id), rank() OVER (${p})) AS d, dense_rank() OVER (${p}) % 3 AS r
        FROM of_windows)`,
  ],
};

it.each(Object.entries(inside))('in expressions: %s', async (_name, [make, sql]) => {
  const path = join(temporaryFolder(), 'rows.parquet');
  await session.fromRows(rows).write.parquet(path, { rowGroupSize: 150 });
  const duck = await duckdb();
  await duck.run(`CREATE OR REPLACE TABLE of_windows AS SELECT * FROM '${path}'`);
  const found = (await make(session.read.parquet(path)).toArray()) as Record<string, unknown>[];
  const textOf = (row: readonly unknown[]) => row.map((cell) => String(plain(cell))).join();
  const wanted = (await duckRows(sql)).map(textOf);
  expect(found.length).toBeGreaterThan(3);
  expect(found.map((row) => textOf(Object.values(row))).sort()).toEqual(wanted.sort());
});

it('a function that stands twice in expressions is computed once, and has a name', async () => {
  const share = col('v').divide(sum('v').over({ partitionBy: 'p' }));
  const all = session
    .fromRows(rows)
    .select(share.as('a'), share.times(100).as('b'), rowNumber().over(falling));
  expect((await all.explain()).replace(/Physical[^]*/, '').match(/sum\(v\) as/g)).toHaveLength(2);
  expect((await all.schema()).fields.map(({ name }) => name)).toEqual([
    'a',
    'b',
    'rowNumber() over (by p order k desc)',
  ]);
});

it('conditions on ranks remove rows before the exchange', async () => {
  const path = join(temporaryFolder(), 'many.parquet');
  const drawnKeys = [null, Number.NaN, ...Array.from({ length: 5000 }, (_, i) => i / 2)];
  const many = Array.from({ length: 80_000 }, (_, id) => ({
    id,
    p: drawn([1, 2, null]),
    k: drawn(drawnKeys),
  }));
  await session.fromRows(many).write.parquet(path, { rowGroupSize: 70_000 });
  await (await duckdb()).run(`CREATE OR REPLACE TABLE of_ranks AS SELECT * FROM '${path}'`);
  const table = session.read.parquet(path);
  const ranks = table.withColumns({
    number: rowNumber().over(by),
    rank: rank().over(by),
    tied: rank().over(rising),
  });
  expect(await ranks.filter(col('number').le(3)).explain()).not.toMatch(/first/);
  for (const [column, sql] of [
    [rowNumber().over(by), `row_number() OVER (${p}, id)`],
    [rank().over(rising), `rank() OVER (${p})`],
    [denseRank().over(falling), `dense_rank() OVER (${down})`],
  ] as const) {
    const first = table.withColumn('n', column).filter(col('n').lt(4).and(col('id').ge(0)));
    expect(await first.explain()).toMatch(/first: "window 1" < 4/);
    const wanted = await duckRows(
      `SELECT id, n FROM (SELECT *, ${sql} AS n FROM of_ranks) WHERE n < 4 ORDER BY id`,
    );
    const found = await first.orderBy('id').toArray();
    expect(found.map(({ id, n }) => [id, plain(n)])).toEqual(
      wanted.map(([id, n]) => [Number(id), Number(n)]),
    );
  }
  // The other functions need only rows before a row, or with its key.
  const others = {
    n: rank().over(rising),
    before: lag('k', 1, { ignoreNulls: true }).over(rising),
    counts: count().over(rising),
    running: sum('id').over({ ...rising, range: [-Infinity, 0] }),
  };
  const several = table.withColumns(others).filter(col('n').le(3));
  expect(await several.explain()).toMatch(/first: "window 1" <= 3/);
  const kept = (rows: readonly Record<string, unknown>[]) =>
    rows.filter(({ n }) => Number(n) <= 3).map(({ p: own, k, counts, running }) => [own, k, counts, running]);
  expect(kept(await several.orderBy('id').toArray())).toEqual(
    kept(await table.withColumns(others).orderBy('id').toArray()),
  );
  const later = [
    lead('id').over(rising),
    count().over({ partitionBy: 'p' }),
    lag('id', col('id')).over(rising),
  ];
  for (const one of later)
    expect(
      await table
        .withColumns({ n: rank().over(rising), one })
        .filter(col('n').le(3))
        .explain(),
    ).not.toMatch(/first:/);
  const run = await table
    .withColumn('n', rowNumber().over(by))
    .filter(col('n').le(3))
    .explain({ analyze: true });
  expect(run).toMatch(/first-rows/);
});

it('functions that nobody needs are not computed', async () => {
  const table = session.fromRows(rows);
  const both = table.withColumns({ n: rowNumber().over(by), m: rank().over(falling) });
  expect(await both.select('id', 'm').explain()).not.toMatch(/Optimized[^]*rowNumber/);
  expect(await both.filter(col('m').gt(0)).count()).toBe(rows.length);
  expect(await both.select('id').toArray()).toHaveLength(rows.length);
  expect(await both.count()).toBe(rows.length);
});

it('refuses windows that have no meaning', async () => {
  const lists = new Table({ l: vectorFromArray([[1, 2]]) }).batches[0];
  const table = session.fromRows(rows);
  const wrong: readonly (readonly [() => unknown, RegExp])[] = [
    [() => table.withColumn('n', rowNumber().over({ partitionBy: 'p' })), /rowNumber needs an order/],
    [() => sum('v').over({ orderBy: 'k', rows: [2, 1] }), /ends before it begins: rows \[2, 1\]/],
    [() => sum('v').over({ orderBy: 'k', rows: [-1.5, 1] }), /two whole numbers/],
    [() => sum('v').over({ orderBy: 'k', rows: [0, 1], range: [0, 1] }), /not both/],
    [() => table.withColumn('n', sum('v').over({ orderBy: ['k', 'v'], range: [-1, 0] })), /takes one key/],
    [() => table.filter(rank().over({ orderBy: 'k' })).schema(), /must be true or false of a row/],
    [() => col('v').divide(rank() as never), /takes numbers, texts, truths, dates and null/],
    [() => lag('v', 1.5), /whole number or a column/],
    [
      () => table.withColumnRenamed('v', 'window 1').withColumn('n', rank().over(rising)).count(),
      /"window 1" twice/,
    ],
    [
      () =>
        table
          .withColumnRenamed('v', 'window value 1')
          .select(sum(col('id').plus(1)).over({}))
          .toArray(),
      /needs a column "window value 1" for itself/,
    ],
    [
      () => table.withColumnRenamed('v', 'sort key 1').orderBy(col('id').plus(1)).toArray(),
      /needs a column "sort key 1" for itself/,
    ],
    [
      () => session.from([lists]).select(min('l').over({})).schema(),
      /min over a window takes no values of type List/,
    ],
    [
      () => table.withColumn('n', sessionNumber('v', 1).over({ partitionBy: 'p' })),
      /sessionNumber needs an order/,
    ],
    [() => sum('v').over({ orderBy: 'k', range: [NaN, 1] }), /two numbers such as \[-6, 0\], got \[NaN, 1\]/],
    [() => table.select(rank() as never), /class WindowFunction. Name its window/],
    [() => table.withColumn('n', sum('v') as never), /class AggregateColumn. Write groupBy/],
    [() => table.withColumn('n', sum('w').over({ partitionBy: 'p' })).schema(), /no column "w"/],
    [() => table.withColumn('n', sum('s').over({ partitionBy: 'p' })).schema(), /takes no values of type/],
    [
      () => table.withColumn('n', lag('v', col('k')).over(by)).schema(),
      /offset of lag must be whole numbers, got Float64/,
    ],
    [
      () => table.withColumn('n', sum('v').over({ orderBy: 's', range: [-1, 0] })).schema(),
      /numbers or times/,
    ],
  ];
  for (const [make, message] of wrong) await expect((async () => make())()).rejects.toThrow(message);
});
