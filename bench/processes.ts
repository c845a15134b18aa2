/**
 * Measured processes: whole commands of a build, and engines that each keep a process, warm, and run one piece
 * of work at a time.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { Given, Row, Values } from './harness.ts';
import { median } from './harness.ts';

const root = resolve(import.meta.dirname, '..');
const MIB = 2 ** 20;

/** Seconds on the clock and of processors, and peak memory in MiB; `output` of a command, `result` of an engine. */
export interface Used {
  readonly seconds: number;
  readonly processor: number;
  readonly peak: number;
  readonly output: string;
  readonly result?: number | null;
}

/** Runs a command of a build to its end. */
export function command(main: string, args: readonly string[], { scratch }: Given): Used {
  const file = join(scratch, 'usage.json');
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', pathToFileURL(join(import.meta.dirname, 'usage.ts')).href, main, ...args],
    { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, BENCH_USAGE: file } },
  );
  const seconds = (performance.now() - started) / 1000;
  if (status !== 0) throw new Error(`status ${status}: ${stderr.trim().split('\n').at(-1)}`);
  const usage = JSON.parse(readFileSync(file, 'utf8')) as NodeJS.ResourceUsage;
  return {
    seconds,
    processor: (usage.userCPUTime + usage.systemCPUTime) / 1e6,
    peak: usage.maxRSS / 1024,
    output: stdout,
  };
}

/** Of whole trainings: without evaluation, the median of the iterations. */
export const trainColumns = {
  iteration: 's',
  load: 's',
  'M ratings': '1/s',
  whole: 's',
  peak: 'MiB',
  loss: '',
  'test RMSE': '',
};

interface Trained {
  readonly ratings: number;
  readonly iterations: readonly {
    readonly seconds: number;
    readonly loss?: number;
    readonly testRmse?: number;
  }[];
  readonly seconds: { readonly load: number };
  readonly peakRssBytes: number;
}

/** A training by each build. */
export function trainings(given: Given, flags: readonly string[]): Row['engines'] {
  const train = (main: string): Values => {
    const model = ['--model-dir', join(given.scratch, 'model'), '--force'];
    const { seconds, output } = command(main, ['train', ...flags, ...model, '--json', '--quiet'], given);
    const trained = JSON.parse(output) as Trained;
    const last = trained.iterations.at(-1);
    return {
      iteration: median(trained.iterations.map((one) => one.seconds)),
      load: trained.seconds.load,
      'M ratings': trained.ratings / trained.seconds.load / 1e6,
      whole: seconds,
      peak: trained.peakRssBytes / MIB,
      loss: last?.loss,
      'test RMSE': last?.testRmse,
    };
  };
  return Object.fromEntries(Object.entries(given.builds).map(([build, main]) => [build, () => train(main)]));
}

/** The folder of a data set of `factorflow generate`; made under build/bench if none is given. */
export function generated(preset: string, given: Given, folder = given.words[0]): string {
  const data = resolve(folder ?? join(root, 'build/bench', preset));
  if (!existsSync(data)) {
    const [main] = Object.values(given.builds);
    const args = [main, 'generate', '--preset', preset, '--seed', '1', '--output', data];
    execFileSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  return data;
}

/** A process that answers each line, the name of a piece of work, with a line of JSON. */
export class EngineProcess {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const stdio = ['pipe', 'pipe', 'inherit'] as const;
    this.#process = spawn(program, args, { stdio: [...stdio], env: { ...process.env, ...env } });
    const output = this.#process.stdout as NodeJS.ReadableStream;
    this.#lines = createInterface({ input: output })[Symbol.asyncIterator]();
  }

  async ask<Answer = Used>(work: string): Promise<Answer> {
    this.#process.stdin?.write(`${work}\n`);
    return this.answer();
  }

  async answer<Answer = Used>(): Promise<Answer> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the process of the engine ended');
    return JSON.parse(value) as Answer;
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await ended;
  }
}

/** Pieces of work by name; each returns a count or a sum, by which engines are compared. */
export type Works = Readonly<Partial<Record<string, () => Promise<number>>>>;

/** An engine in a process of its own: `engines[name]` of a module, called with `args`. */
export function engineOf(module: string, name: string, args: readonly string[]): EngineProcess {
  return new EngineProcess(process.execPath, [import.meta.filename, module, name, ...args]);
}

/** An engine of Python, which bench/engines/ has. */
export function pythonEngine(
  python: string,
  script: string,
  args: readonly string[],
  env = {},
): EngineProcess {
  return new EngineProcess(python, [join(import.meta.dirname, 'engines', script), ...args], env);
}

/** A row in which each engine does the same work; engines whose results differ are an error. */
export function sameWork(work: string, engines: Readonly<Record<string, EngineProcess>>): Row {
  let expected: number | undefined;
  const run = async (engine: EngineProcess): Promise<Values> => {
    const { result, ...used } = await engine.ask(work);
    expected ??= result ?? undefined;
    if (result != null && expected !== undefined && Math.abs(result - expected) > 1e-9 * Math.abs(expected))
      throw new Error(`the result is ${result}, not ${expected}`);
    return { ...used, output: undefined };
  };
  return {
    name: work,
    engines: Object.fromEntries(Object.entries(engines).map(([name, engine]) => [name, () => run(engine)])),
  };
}

async function serve([module, name, ...args]: readonly string[]): Promise<void> {
  type Opened = (...args: readonly string[]) => Promise<Works>;
  const { engines } = (await import(module)) as { readonly engines: Readonly<Record<string, Opened>> };
  const works = await engines[name](...args);
  for await (const line of createInterface({ input: process.stdin })) {
    const [started, before] = [performance.now(), process.cpuUsage()];
    const result = await works[line]?.();
    const { user, system } = process.cpuUsage(before);
    const seconds = (performance.now() - started) / 1000;
    const peak = process.resourceUsage().maxRSS / 1024;
    console.log(JSON.stringify({ seconds, processor: (user + system) / 1e6, peak, result }));
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await serve(process.argv.slice(2));
