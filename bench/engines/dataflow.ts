/** Pipelines of bench/cases/dataflow.ts over a folder of ratings, by engines for Node. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Table } from 'apache-arrow';
import type { Works } from '../processes.ts';
import { sums } from './partial-sums.ts';

/** A table of (item, weight) for all items, which the case writes. */
export const titlesBeside = (folder: string) => `${folder}-items.parquet`;

/** Events (user, item, kind, at, price) as CSV, which the case writes. */
export const eventsBeside = (folder: string) => `${folder}-events.csv`;

async function factorflow(folder: string, output: string): Promise<Works> {
  const { col, count, mean, rowNumber, Session, sum } = await import('../../index.ts');
  const session = await Session.create({ device: 'cpu', workers: 2 });
  const rows = () => session.read.parquet(folder);
  const module = new URL('partial-sums.ts', import.meta.url).href;
  const taken = async (result: AsyncIterable<{ readonly numRows: number }>) => {
    let found = 0;
    for await (const { numRows } of result) found += numRows;
    return found;
  };
  const grouped = (...keys: string[]) =>
    taken(
      rows()
        .groupBy(...keys)
        .agg(count().as('n'), mean('rating').as('mean')),
    );
  return {
    write: async () => {
      const good = rows().filter(col('rating').ge(4));
      const kept = good.select('user', 'item', col('rating').times(2).as('score'));
      await kept.write.parquet(output, { overwrite: true });
      return 0;
    },
    count: () => rows().filter(col('rating').ge(4)).count(),
    sum: async () => {
      const computed = rows().withColumn('x', col('rating').times(col('rating')).plus(1));
      const parts = computed
        .select('x')
        .mapBatches({ module, name: 'sumOf', args: { column: 'x' } }, { schema: sums });
      let total = 0;
      for await (const batch of parts) for (const { values } of batch.data.children) total += values[0];
      return total;
    },
    items: () => grouped('item'),
    users: () => grouped('user'),
    pairs: () => grouped('user', 'item'),
    join: async () => {
      const titles = session.read.parquet(titlesBeside(folder));
      return taken(rows().join(titles, 'item').select('user', 'weight', 'rating'));
    },
    distinct: () => taken(rows().select('user', 'item').distinct()),
    top: () => taken(rows().groupBy('item').agg(count().as('n')).orderBy(col('n').desc(), 'item').limit(100)),
    sort: () => taken(rows().orderBy('user', 'timestamp')),
    events: () => {
      const clean = session.read
        .csv(eventsBeside(folder))
        .filter(col('kind').isNotNull().and(col('price').gt(0)));
      const totals = clean.distinct().groupBy('user', 'item').agg(count().as('n'), sum('price').as('total'));
      return taken(totals);
    },
    row_number: () =>
      taken(rows().withColumn('n', rowNumber().over({ partitionBy: 'user', orderBy: 'timestamp' }))),
  };
}

async function duckdb(folder: string, output: string): Promise<Works> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect();
  const rows = `'${folder}/*.parquet'`;
  const value = async (query: string) => Number((await connection.runAndReadAll(query)).getRows()[0][0]);
  const made = async (query: string) => {
    await connection.run(`CREATE OR REPLACE TEMP TABLE result AS ${query}`);
    return value('SELECT count(*) FROM result');
  };
  return {
    write: async () => {
      const query = `SELECT "user", item, rating * 2 AS score FROM ${rows} WHERE rating >= 4`;
      await connection.run(
        `COPY (${query}) TO '${output}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)`,
      );
      return 0;
    },
    count: () => value(`SELECT count(*)::DOUBLE FROM ${rows} WHERE rating >= 4`),
    sum: () => value(`SELECT sum((rating * rating + 1)::DOUBLE) FROM ${rows}`),
    items: () => made(`SELECT item, count(*) AS n, avg(rating) AS mean FROM ${rows} GROUP BY item`),
    users: () => made(`SELECT "user", count(*) AS n, avg(rating) AS mean FROM ${rows} GROUP BY "user"`),
    pairs: () =>
      made(`SELECT "user", item, count(*) AS n, avg(rating) AS mean FROM ${rows} GROUP BY "user", item`),
    join: () =>
      made(`SELECT "user", weight, rating FROM ${rows} JOIN '${titlesBeside(folder)}' USING (item)`),
    distinct: () => made(`SELECT DISTINCT "user", item FROM ${rows}`),
    top: () => made(`SELECT item, count(*) AS n FROM ${rows} GROUP BY item ORDER BY n DESC, item LIMIT 100`),
    sort: () => made(`SELECT * FROM ${rows} ORDER BY "user", "timestamp"`),
    events: () =>
      made(
        `SELECT "user", item, count(*) AS n, sum(price) AS total FROM (SELECT DISTINCT * FROM '${eventsBeside(folder)}'
          WHERE kind IS NOT NULL AND price > 0) GROUP BY "user", item`,
      ),
    row_number: () =>
      made(`SELECT *, row_number() OVER (PARTITION BY "user" ORDER BY "timestamp") AS n FROM ${rows}`),
  };
}

interface ArqueroTable {
  filter(criteria: string): ArqueroTable;
  select(...columns: readonly string[]): ArqueroTable;
  derive(values: Readonly<Record<string, string>>): ArqueroTable;
  rollup(values: Readonly<Record<string, string>>): ArqueroTable;
  groupby(...columns: readonly string[]): ArqueroTable;
  orderby(...columns: readonly unknown[]): ArqueroTable;
  join(other: ArqueroTable, on: string): ArqueroTable;
  dedupe(...columns: readonly string[]): ArqueroTable;
  slice(from: number, to: number): ArqueroTable;
  reify(): ArqueroTable;
  get(column: string): number;
  numRows(): number;
  toArrowIPC(options: { readonly type: 'stream' | 'file'; readonly format?: string }): Uint8Array;
}

/** Arquero cannot read or write Parquet: parquet-wasm does, as in its guide. */
async function arquero(folder: string, output: string, modules: string): Promise<Works> {
  const main = pathToFileURL(join(modules, 'node_modules/arquero/src/index.js')).href;
  const aq = (await import(main)) as {
    fromArrow(stream: Uint8Array): ArqueroTable;
    desc(column: string): unknown;
  };
  const wasm = await import('parquet-wasm/node');
  const { tableFromIPC, tableToIPC, Table: ArrowTable } = await import('apache-arrow');
  const files = globSync(join(folder, '*.parquet')).sort();
  const rows = (columns: string[]) => {
    const parts: Table[] = files.map((file) =>
      tableFromIPC(wasm.readParquet(readFileSync(file), { columns }).intoIPCStream()),
    );
    return aq.fromArrow(tableToIPC(new ArrowTable(parts.flatMap(({ batches }) => batches))));
  };
  const grouped = async (...keys: string[]) =>
    rows([...keys, 'rating'])
      .groupby(...keys)
      .rollup({ n: 'd => op.count()', mean: 'd => op.mean(d.rating)' })
      .numRows();
  const writing = new wasm.WriterPropertiesBuilder().setCompression(wasm.Compression.ZSTD).build();
  return {
    write: async () => {
      const good = rows(['user', 'item', 'rating']).filter('d => d.rating >= 4');
      const kept = good.derive({ score: 'd => d.rating * 2' }).select('user', 'item', 'score');
      const stream = kept.toArrowIPC({ type: 'stream' });
      writeFileSync(output, wasm.writeParquet(wasm.Table.fromIPCStream(stream), writing));
      return 0;
    },
    count: async () => rows(['rating']).filter('d => d.rating >= 4').numRows(),
    sum: async () =>
      rows(['rating'])
        .derive({ x: 'd => d.rating * d.rating + 1' })
        .rollup({ sum: 'd => op.sum(d.x)' })
        .get('sum'),
    items: () => grouped('item'),
    users: () => grouped('user'),
    pairs: () => grouped('user', 'item'),
    join: async () => {
      const titles = aq.fromArrow(wasm.readParquet(readFileSync(titlesBeside(folder))).intoIPCStream());
      const joined = rows(['user', 'item', 'rating']).join(titles, 'item');
      return joined.select('user', 'weight', 'rating').reify().numRows();
    },
    distinct: async () => rows(['user', 'item']).dedupe('user', 'item').reify().numRows(),
    top: async () =>
      rows(['item'])
        .groupby('item')
        .rollup({ n: 'd => op.count()' })
        .orderby(aq.desc('n'), 'item')
        .slice(0, 100)
        .reify()
        .numRows(),
    sort: async () =>
      rows(['user', 'item', 'rating', 'timestamp']).orderby('user', 'timestamp').reify().numRows(),
  };
}

/** The part of nodejs-polars that the pipelines use. It is not a dependency of this project. */
interface Polars {
  col(name: string): PolarsColumn;
  len(): PolarsColumn;
  scanParquet(path: string): PolarsRows;
}

interface PolarsColumn {
  alias(name: string): PolarsColumn;
  mean(): PolarsColumn;
}

interface PolarsRows {
  select(...columns: readonly string[]): PolarsRows;
  groupBy(keys: readonly string[]): { agg(...values: readonly PolarsColumn[]): PolarsRows };
  join(other: PolarsRows, options: { readonly on: string; readonly how: 'inner' }): PolarsRows;
  sort(by: readonly string[], descending?: readonly boolean[]): PolarsRows;
  unique(): PolarsRows;
  limit(rows: number): PolarsRows;
  collect(): Promise<{ readonly height: number }>;
}

async function nodePolars(folder: string, _output: string, modules: string): Promise<Works> {
  const require = createRequire(join(modules, 'package.json'));
  const pl = require('nodejs-polars') as Polars;
  const rows = () => pl.scanParquet(`${folder}/*.parquet`);
  const height = async (result: PolarsRows) => (await result.collect()).height;
  const grouped = (...keys: readonly string[]) =>
    height(rows().groupBy(keys).agg(pl.len().alias('n'), pl.col('rating').mean().alias('mean')));
  const top = () => rows().groupBy(['item']).agg(pl.len().alias('n')).sort(['n', 'item'], [true, false]);
  return {
    items: () => grouped('item'),
    users: () => grouped('user'),
    pairs: () => grouped('user', 'item'),
    join: () => {
      const joined = rows().join(pl.scanParquet(titlesBeside(folder)), { on: 'item', how: 'inner' });
      return height(joined.select('user', 'weight', 'rating'));
    },
    distinct: () => height(rows().select('user', 'item').unique()),
    top: () => height(top().limit(100)),
    sort: () => height(rows().sort(['user', 'timestamp'])),
  };
}

/** Given the folder of ratings, a file to write, and the folder with the modules of arquero or nodejs-polars. */
export const engines: Readonly<Record<string, (...given: [string, string, string]) => Promise<Works>>> = {
  factorflow,
  duckdb,
  arquero,
  'nodejs-polars': nodePolars,
};
