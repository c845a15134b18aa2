import { globSync, mkdirSync, symlinkSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventsBeside, titlesBeside } from '../engines/dataflow.ts';
import type { Case, Given } from '../harness.ts';
import { type EngineProcess, engineOf, pythonEngine, sameWork } from '../processes.ts';

/** Pipelines that run on each split alone, which all engines but Spark have. */
const narrow = ['write', 'count', 'sum'];
/** Pipelines that need the rows of all splits; all of their results are computed. */
const wide = ['items', 'users', 'pairs', 'join', 'distinct', 'top', 'sort', 'row_number', 'events'];
const module = fileURLToPath(new URL('../engines/dataflow.ts', import.meta.url));

const dataflow: Case = {
  about:
    'Pipelines over files of ratings compared with DuckDB, Polars, arquero and Spark, each in a process with two ' +
    'threads (arquero has one); `events` cleans, dedupes and groups a CSV. FOLDER: train/ of `factorflow generate --preset movielens20m --timestamps`. An ' +
    'engine without its option is left out: --python has polars, --spark has pyspark, --arquero and ' +
    '--nodejs-polars are folders with node_modules. --pipelines are some of ' +
    `${[...narrow, ...wide].join(', ')}; --copies N reads N links of each file.`,
  words: 'FOLDER',
  options: { pipelines: '', copies: '', python: '', spark: '', arquero: '', 'nodejs-polars': '' },
  columns: { seconds: 's', processor: 's', peak: 'MiB' },
  rounds: 7,
  warmUp: 1,
  async *rows(given) {
    const folder = given.options.copies === '' ? resolve(given.words[0]) : copiesOf(given);
    const chosen = given.options.pipelines === '' ? [...narrow, ...wide] : given.options.pipelines.split(',');
    if (chosen.some((name) => wide.includes(name))) await writeTables(folder);
    for (const pipelines of [narrow, wide].map((all) => all.filter((name) => chosen.includes(name)))) {
      if (pipelines.length === 0) continue;
      const engines = open(
        folder,
        given,
        pipelines.some((name) => wide.includes(name)),
      );
      for (const pipeline of pipelines) yield sameWork(pipeline, engines);
      for (const engine of Object.values(engines)) await engine.close();
    }
  },
};
export default dataflow;

function open(folder: string, { options, scratch }: Given, isWide: boolean): Record<string, EngineProcess> {
  const { python, spark, arquero, 'nodejs-polars': polars } = options;
  const output = (name: string) => join(scratch, `${name}.parquet`);
  const ofNode = (name: string, modules = '') => ({
    [name]: engineOf(module, name, [folder, output(name), modules && resolve(modules)]),
  });
  const threads = { POLARS_MAX_THREADS: '2' };
  return {
    ...ofNode('factorflow'),
    ...ofNode('duckdb'),
    ...(python && {
      polars: pythonEngine(python, 'polars-pipelines.py', [folder, output('polars')], threads),
    }),
    ...(polars && isWide && ofNode('nodejs-polars', polars)),
    ...(spark && isWide && { spark: pythonEngine(spark, 'spark-pipelines.py', [folder]) }),
    ...(arquero && ofNode('arquero', arquero)),
  };
}

/** Writes a row for each item, for the join, and 27 MB of events of which 8 % occur twice. */
async function writeTables(folder: string): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const items = `SELECT item, (item % 97)::FLOAT AS weight FROM '${folder}/*.parquet' GROUP BY item`;
  await connection.run(`COPY (${items}) TO '${titlesBeside(folder)}' (FORMAT parquet)`);
  const drawn = (k: number) => `(hash(i * 10 + ${k}) % 1000003 / 1000003.0)`;
  const events = `SELECT concat('u', floor(60000 * ${drawn(1)} ** 3)::INT) AS "user",
    floor(20000 * ${drawn(2)} ** 2)::INT AS item,
    CASE WHEN ${drawn(3)} < 0.005 THEN NULL ELSE ['view', 'view', 'cart', 'buy'][1 + (i % 4)] END AS kind,
    strftime(TIMESTAMP '2026-01-01' + to_milliseconds((15e9 * ${drawn(4)})::BIGINT), '%Y-%m-%dT%H:%M:%S.%gZ') AS at,
    CASE WHEN ${drawn(5)} < 0.01 THEN NULL ELSE round(100 * ${drawn(6)}, 2) END AS price
    FROM (SELECT CASE WHEN hash(i) % 100 < 8 THEN i - 999 ELSE i END AS i FROM range(1000, 605000) t(i))`;
  await connection.run(`COPY (${events}) TO '${eventsBeside(folder)}' (FORMAT csv)`);
  connection.closeSync();
}

/** Links to the files under other names, in one folder. */
function copiesOf({ words: [folder], options: { copies }, scratch }: Given): string {
  const linked = join(scratch, 'copies');
  mkdirSync(linked);
  for (const file of globSync(join(resolve(folder), '*.parquet')))
    for (let copy = 0; copy < Number(copies); copy++)
      symlinkSync(file, join(linked, `${copy}-${basename(file)}`));
  return linked;
}
