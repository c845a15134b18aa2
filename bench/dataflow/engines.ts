/**
 * One engine of bench/dataflow.ts in a process of its own: a line of stdin names the next pipeline, a line of
 * stdout has its seconds and result.
 *
 *     node bench/dataflow/engines.ts ENGINE FOLDER OUTPUT [ARQUERO]
 */
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { Table } from 'apache-arrow';
import { sums } from './partial-sums.ts';

export const pipelineNames = ['write', 'count', 'sum'] as const;
export type Pipeline = (typeof pipelineNames)[number];

/** A pipeline gives its count or sum; 0 where rows are written. */
type Pipelines = Readonly<Record<Pipeline, () => Promise<number>>>;

async function factorflow(folder: string, output: string): Promise<Pipelines> {
  const { col, Session } = await import('../../index.ts');
  const session = await Session.create({ device: 'cpu', workers: 2 });
  const rows = () => session.read.parquet(folder);
  const module = new URL('partial-sums.ts', import.meta.url).href;
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
  };
}

async function duckdb(folder: string, output: string): Promise<Pipelines> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect();
  const rows = `'${folder}/*.parquet'`;
  const value = async (query: string) => Number((await connection.runAndReadAll(query)).getRows()[0][0]);
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
  };
}

interface ArqueroTable {
  filter(criteria: string): ArqueroTable;
  select(...columns: readonly string[]): ArqueroTable;
  derive(values: Readonly<Record<string, string>>): ArqueroTable;
  rollup(values: Readonly<Record<string, string>>): ArqueroTable;
  get(column: string): number;
  numRows(): number;
  toArrowIPC(options: { readonly type: 'stream' | 'file'; readonly format?: string }): Uint8Array;
}

/** Arquero reads and writes no Parquet: parquet-wasm does, as its guide has it. */
async function arquero(folder: string, output: string, modules: string): Promise<Pipelines> {
  const main = pathToFileURL(join(modules, 'node_modules/arquero/src/index.js')).href;
  const aq = (await import(main)) as { fromArrow(stream: Uint8Array): ArqueroTable };
  const wasm = await import('parquet-wasm/node');
  const { tableFromIPC, tableToIPC, Table: ArrowTable } = await import('apache-arrow');
  const files = globSync(join(folder, '*.parquet')).sort();
  const rows = (columns: string[]) => {
    const parts: Table[] = files.map((file) =>
      tableFromIPC(wasm.readParquet(readFileSync(file), { columns }).intoIPCStream()),
    );
    return aq.fromArrow(tableToIPC(new ArrowTable(parts.flatMap(({ batches }) => batches))));
  };
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
  };
}

const engines: Readonly<Record<string, (...given: [string, string, string]) => Promise<Pipelines>>> = {
  factorflow,
  duckdb,
  arquero,
};

if (import.meta.main) {
  const [engine, folder, output, modules = ''] = process.argv.slice(2);
  const pipelines = await engines[engine](folder, output, modules);
  for await (const line of createInterface({ input: process.stdin })) {
    rmSync(output, { recursive: true, force: true });
    const [started, used] = [performance.now(), process.cpuUsage()];
    const result = await pipelines[line as Pipeline]();
    const { user, system } = process.cpuUsage(used);
    const seconds = (performance.now() - started) / 1000;
    console.log(JSON.stringify({ seconds, processor: (user + system) / 1e6, result }));
  }
  process.exit(0);
}
