import { appendFileSync, writeFileSync } from 'node:fs';
import type { UpdateVariant } from '../../gpu/update/variant.ts';
import type { HalfIterations, TrainingSetting } from './half-iterations.ts';
import { type Measurement, measure } from './measure.ts';

/** Iterations after which settings that compute the same have the same test RMSE. */
export const CHECK_ITERATIONS = 2;

/** One line of a table: a way to train and what it is called there. */
export interface Row extends TrainingSetting {
  readonly label: string;
  /** What a paper found of the same. */
  readonly paper?: string;
  /** Iterations before the test RMSE is taken; CHECK_ITERATIONS when not given. */
  readonly iterations?: number;
}

/** One table, or the part of it for one rank. */
export interface Table {
  /** What `--tables` calls it. */
  readonly name: string;
  readonly rank: number;
  run(bench: BenchRun): Promise<void>;
}

/** One run of a bench: what trains, what may still be spent, and where lines go: to the console, and to a file. */
export class BenchRun {
  readonly training: HalfIterations;
  readonly #output: string | undefined;
  readonly #end: number;

  constructor(training: HalfIterations, { seconds, output }: { readonly seconds: number; readonly output?: string }) {
    this.training = training;
    this.#output = output;
    this.#end = performance.now() + 1000 * seconds;
    if (output !== undefined) writeFileSync(output, '');
  }

  get timeIsUp(): boolean {
    return performance.now() >= this.#end;
  }

  line(text: string): void {
    console.log(text);
    if (this.#output !== undefined) appendFileSync(this.#output, `${text}\n`);
  }

  /** The head of a table in Markdown; `paper` says whose experiment it repeats and what came out. */
  head(title: string, paper: string, columns: readonly string[]): void {
    this.line(`\n${title}\n${paper}\n\n${cells(columns)}\n|${'---|'.repeat(columns.length)}`);
  }

  row(values: readonly string[]): void {
    this.line(cells(values));
  }

  /** Measures row after row and prints each. One that fails says so in its line; what time does not allow is counted. */
  async rows(rows: readonly Row[], print: (row: Row, measured: Measurement) => readonly string[]): Promise<void> {
    for (const [at, row] of rows.entries()) {
      if (this.timeIsUp) return this.line(`\nTime was up before ${rows.length - at} more lines, from: ${row.label}`);
      const measured = await this.attempt(row.label, () => measure(this.training, { iterations: CHECK_ITERATIONS, ...row }));
      if (measured === undefined) continue;
      this.row(print(row, measured));
      for (const bad of measured.bad) this.line(`(${row.label}: ${bad} is not finite)`);
    }
  }

  /** What `work` gives, or undefined after a line with its error. */
  async attempt<T>(label: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.line(`(${label}: ${error instanceof Error ? error.message.split('\n')[0].slice(0, 200) : String(error)})`);
      return undefined;
    }
  }
}

/** "24.1 (15.9 + 8.1)": an iteration, its users and its items, in milliseconds. */
export function iterationCell({ wall, sides, once }: Measurement): string {
  return `${milliseconds(wall)} (${milliseconds(sides.users)} + ${milliseconds(sides.items)})${once ? ' once' : ''}`;
}

export function rmseCell({ rmse }: Measurement): string {
  return Number.isNaN(rmse) ? '-' : rmse.toFixed(4);
}

export function milliseconds(value: number): string {
  return value < 100 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : value.toFixed(0);
}

/** Milliseconds on the GPU of the kernels whose names begin with one of `beginnings`, both sides. */
export function kernelTime({ kernels }: Measurement, beginnings: readonly string[]): number {
  const own = Object.entries(kernels).filter(([kernel]) => beginnings.some((beginning) => kernel.split(' ')[1].startsWith(beginning)));
  return own.reduce((sum, [, ms]) => sum + ms, 0);
}

/** The same as text; "-" where there are none. */
export function kernelCell(measured: Measurement, ...beginnings: readonly string[]): string {
  const time = kernelTime(measured, beginnings);
  return time === 0 ? '-' : milliseconds(time);
}

export const sumKernels = ['normal-equations'] as const;
export const solveKernels = ['solve-'] as const;
export const shortKernels = ['update-short', 'update-matrix-free', 'to-half'] as const;

/** Useful floating-point operations a second, in 10^12: N_z f (f + 1) a half-iteration, what the lower triangles of A take. */
export function teraflops(ratings: number, rank: number, ms: number): number {
  return (2 * ratings * rank * (rank + 1)) / ms / 1e9;
}

/** The first variant by rule of a precision; throws when there is none. */
export function bestVariant(training: HalfIterations, rank: number, steps: number, precision: 'f32' | 'f16'): UpdateVariant {
  const found = training.variants(rank, steps).find((variant) => variant.precision === precision);
  if (found === undefined) throw new Error(`no variant in ${precision} serves rank ${rank}`);
  return found;
}

function cells(values: readonly string[]): string {
  return `| ${values.join(' | ')} |`;
}
