/**
 * One engine of bench/dataflow.ts in its own process: a line of stdin names the next pipeline, a line of
 * stdout has its seconds and result.
 *
 *     node bench/dataflow/engines.ts ENGINE FOLDER OUTPUT [MODULES]
 */
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { Table } from 'apache-arrow';
import { nodePolars } from './nodejs-polars.ts';
import { sums } from './partial-sums.ts';

/** Pipelines that run on each split alone. */
export const narrow = ['write', 'count', 'sum'] as const;
/**
 * Pipelines that need the rows of all splits: they return the number of result rows, all of which are
 * computed.
 */
export const wide = ['items', 'users', 'pairs', 'join', 'distinct', 'top', 'sort'] as const;
export const pipelineNames = [...narrow, ...wide] as const;
export type Pipeline = (typeof pipelineNames)[number];

/** A pipeline returns its count or sum; 0 if rows are written. */
type Pipelines = Readonly<Partial<Record<Pipeline, () => Promise<number>>>>;

/** A table of (item, weight) for all items, which bench/dataflow.ts writes. */
export const titlesBeside = (folder: string) => `${folder}-items.parquet`;

async function factorflow(folder: string, output: string): Promise<Pipelines> {
  const { col, count, mean, Session } = await import('../../index.ts');
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
      let sum = 0;
      for await (const batch of parts) for (const { values } of batch.data.children) sum += values[0];
      return sum;
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
  };
}

async function duckdb(folder: string, output: string): Promise<Pipelines> {
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
async function arquero(folder: string, output: string, modules: string): Promise<Pipelines> {
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

const engines: Readonly<Record<string, (...given: [string, string, string]) => Promise<Pipelines>>> = {
  factorflow,
  duckdb,
  arquero,
  'nodejs-polars': async (folder, _, modules) => nodePolars(folder, modules, titlesBeside(folder)),
};

if (import.meta.main) {
  const [engine, folder, output, modules = ''] = process.argv.slice(2);
  const pipelines = await engines[engine](folder, output, modules);
  for await (const line of createInterface({ input: process.stdin })) {
    rmSync(output, { recursive: true, force: true });
    const [started, used] = [performance.now(), process.cpuUsage()];
    const result = await pipelines[line as Pipeline]?.();
    const { user, system } = process.cpuUsage(used);
    const seconds = (performance.now() - started) / 1000;
    console.log(JSON.stringify({ seconds, processor: (user + system) / 1e6, result }));
  }
  process.exit(0);
}
