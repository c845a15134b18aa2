/**
 * Pipelines over files of ratings compared with DuckDB, Polars and arquero. Each engine has its own process
 * with two threads (arquero has one), and they run in turn: a warm-up round, then the medians of the other
 * rounds and the medians of the ratios within a round.
 *
 *     npm run build && node bench/dataflow.ts FOLDER [--rounds 7] [--python PYTHON] [--arquero DIR] [--copies 6]
 *         [--nodejs-polars DIR] [--spark PYTHON] [--pipelines items,sort]
 *
 * FOLDER: `factorflow generate --preset movielens20m --seed 1 --output DIR` makes DIR/train. PYTHON has
 * polars; DIR/node_modules has arquero or nodejs-polars (only for wide pipelines); engines without their
 * option are left out. `write`: filter, project and write Parquet (zstd, level 1). `count`: filter and count.
 * `sum`: a computed column and its sum. `items`, `users` and `pairs`: counts and mean ratings by group.
 * `join`: with a row for each item. `top`: the 100 items with the most ratings. `sort`: all columns by user
 * and timestamp (`generate --timestamps` makes one). Results of the latter are computed completely, in
 * memory. --spark: a Python with pyspark, local[2]; its first round is its warm-up. --copies: also measures
 * milliseconds until the first batch of a filter over N copies (links) of the files, in a process that has
 * not read any file before.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type Pipeline, narrow, pipelineNames, titlesBeside, wide } from './dataflow/engines.ts';
import { describeMachine } from './machine.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '7' },
    python: { type: 'string' },
    arquero: { type: 'string' },
    'nodejs-polars': { type: 'string' },
    copies: { type: 'string' },
    spark: { type: 'string' },
    pipelines: { type: 'string' },
  },
});
const folder = resolve(positionals[0]);
const scratch = mkdtempSync(join(tmpdir(), 'factorflow-dataflow-'));

interface Measured {
  readonly seconds: number;
  /** Processor seconds of all threads. */
  readonly processor: number;
  /** Null for an engine that does not count. */
  readonly result: number | null;
}

/** An engine's process, which runs one pipeline at a time. */
class Engine {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    const env = { ...process.env, POLARS_MAX_THREADS: '2' };
    this.#process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env });
    const output = this.#process.stdout as NodeJS.ReadableStream;
    this.#lines = createInterface({ input: output })[Symbol.asyncIterator]();
  }

  async run(pipeline: Pipeline): Promise<Measured> {
    this.#process.stdin?.write(`${pipeline}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${this.name} ended`);
    return JSON.parse(value) as Measured;
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await ended;
  }
}

/** Writes a row for each item, for the join. */
async function writeItems(): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const items = `SELECT item, (item % 97)::FLOAT AS weight FROM '${folder}/*.parquet' GROUP BY item`;
  await connection.run(`COPY (${items}) TO '${titlesBeside(folder)}' (FORMAT parquet)`);
  connection.closeSync();
}

function engines(isWide: boolean): Engine[] {
  const output = (name: string) => join(scratch, `${name}.parquet`);
  const ofNode = (name: string, folderOf: string, ...more: readonly string[]) =>
    new Engine(name, process.execPath, [
      join(import.meta.dirname, 'dataflow/engines.ts'),
      name,
      folderOf,
      output(name),
      ...more,
    ]);
  const python = join(import.meta.dirname, 'dataflow/polars-engine.py');
  return [
    ofNode('factorflow', folder),
    ofNode('duckdb', folder),
    ...(values.python ? [new Engine('polars', values.python, [python, folder, output('polars')])] : []),
    ...(values['nodejs-polars'] && isWide
      ? [ofNode('nodejs-polars', folder, resolve(values['nodejs-polars']))]
      : []),
    ...(values.spark && isWide
      ? [new Engine('spark', values.spark, [join(import.meta.dirname, 'dataflow/spark-engine.py'), folder])]
      : []),
    ...(values.arquero ? [ofNode('arquero', folder, resolve(values.arquero))] : []),
  ];
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

async function measure(all: readonly Engine[], pipeline: Pipeline): Promise<void> {
  const runs = all.map((): Measured[] => []);
  for (let round = 0; round <= Number(values.rounds); round++) {
    const measured: Measured[] = [];
    for (const engine of all) measured.push(await engine.run(pipeline));
    const [{ result: expected }] = measured;
    const isOther = (result: number | null) =>
      result !== null && Math.abs(result - Number(expected)) > 1e-9 * Math.abs(Number(expected));
    if (measured.some(({ result }) => isOther(result)))
      throw new Error(`the results differ: ${measured.map(({ result }) => result).join(', ')}`);
    if (round > 0) measured.forEach((one, i) => runs[i].push(one));
  }
  for (const [i, { name }] of all.entries()) report(pipeline, name, runs[0], runs[i]);
}

function report(pipeline: string, name: string, own: readonly Measured[], other: readonly Measured[]): void {
  const seconds = other.map((run) => run.seconds);
  const ratio = (of: 'seconds' | 'processor') =>
    median(own.map((run, i) => run[of] / other[i][of])).toFixed(2);
  console.log(
    [
      `${pipeline.padEnd(6)} ${name.padEnd(11)} ${median(seconds).toFixed(3)} s (${Math.min(...seconds).toFixed(3)} to ${Math.max(...seconds).toFixed(3)})`,
      `${median(other.map(({ processor }) => processor)).toFixed(3)} s of processors`,
      `factorflow takes ${ratio('seconds')} of the time, ${ratio('processor')} of the processors`,
    ].join('; '),
  );
}

/** Links to the files under other names, in one folder. */
function copiesOf(count: number): string {
  const copies = join(scratch, 'copies');
  mkdirSync(copies);
  for (const file of globSync(join(folder, '*.parquet')))
    for (let copy = 0; copy < count; copy++) symlinkSync(file, join(copies, `${copy}-${basename(file)}`));
  return copies;
}

function measureFirstBatch(copies: string): void {
  const script = join(import.meta.dirname, 'dataflow/first-batch.ts');
  const runs = Array.from({ length: Number(values.rounds) }, () =>
    execFileSync(process.execPath, [script, copies], { encoding: 'utf8' }),
  ).map((text) => JSON.parse(text) as Readonly<Record<string, number>>);
  for (const name of Object.keys(runs[0]))
    console.log(`first batch, ${name}: ${median(runs.map((run) => run[name])).toFixed(0)}`);
}

try {
  console.log(describeMachine());
  if (values.copies) measureFirstBatch(copiesOf(Number(values.copies)));
  const chosen = pipelineNames.filter((name) => values.pipelines?.split(',').includes(name) ?? true);
  for (const names of [narrow, wide].map((all) => chosen.filter((name) => all.some((one) => one === name)))) {
    if (names.length === 0) continue;
    const isWide = names.some((name) => wide.some((one) => one === name));
    if (isWide) await writeItems();
    const all = engines(isWide);
    for (const pipeline of names) await measure(all, pipeline);
    for (const engine of all) await engine.close();
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
