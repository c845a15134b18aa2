import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { BenchReport, milliseconds, type ReportLimits } from './tables/bench-report.ts';
import type { HalfIterations, TrainingSetting } from './half-iterations.ts';
import { type Measurement, measure } from './measure.ts';

/** Number of iterations before comparing the test RMSE of settings that compute the same. */
export const CHECK_ITERATIONS = 2;

/** One line of a table: a way to train and its label. */
export interface Row extends TrainingSetting {
  readonly label: string;
  /** A paper's result for this setting. */
  readonly paper?: string;
  /** Iterations before the test RMSE is measured; default CHECK_ITERATIONS. */
  readonly iterations?: number;
}

/** One table, or its part for one rank. */
export interface Table {
  /** The name for `--tables`. */
  readonly name: string;
  readonly rank: number;
  run(bench: BenchRun): Promise<void>;
}

/** A run of an ALS bench: the training and its report. */
export class BenchRun extends BenchReport {
  readonly training: HalfIterations;

  constructor(training: HalfIterations, limits: ReportLimits) {
    super(limits);
    this.training = training;
  }

  /**
   * Measures and prints row by row. A failed row prints its error; rows that do not fit in the time are
   * counted.
   */
  async rows(
    rows: readonly Row[],
    print: (row: Row, measured: Measurement) => readonly string[],
  ): Promise<void> {
    for (const [at, row] of rows.entries()) {
      if (this.timeIsUp)
        return this.line(`\nTime was up before ${rows.length - at} more lines, from: ${row.label}`);
      const measured = await this.attempt(row.label, () =>
        measure(this.training, { iterations: CHECK_ITERATIONS, ...row }),
      );
      if (measured === undefined) continue;
      this.row(print(row, measured));
      for (const bad of measured.bad) this.line(`(${row.label}: ${bad} is not finite)`);
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

/** GPU milliseconds of the kernels whose names start with one of `beginnings`, on both sides. */
export function kernelTime({ kernels }: Measurement, beginnings: readonly string[]): number {
  const own = Object.entries(kernels).filter(([kernel]) =>
    beginnings.some((beginning) => kernel.split(' ')[1].startsWith(beginning)),
  );
  return own.reduce((sum, [, ms]) => sum + ms, 0);
}

/** The same as text; "-" if there are none. */
export function kernelCell(measured: Measurement, ...beginnings: readonly string[]): string {
  const time = kernelTime(measured, beginnings);
  return time === 0 ? '-' : milliseconds(time);
}

export const sumKernels = ['normal-equations'] as const;
export const solveKernels = ['solve-'] as const;
export const shortKernels = ['update-short', 'to-half'] as const;

/**
 * Useful floating-point operations per second, in 10^12: N_z f (f + 1) per half-iteration, the operations for
 * the lower triangles of A.
 */
export function teraflops(ratings: number, rank: number, ms: number): number {
  return (2 * ratings * rank * (rank + 1)) / ms / 1e9;
}

/** The best variant by rule with a precision; throws if there is none. */
export function bestVariant(
  training: HalfIterations,
  rank: number,
  steps: number,
  precision: 'f32' | 'f16',
): UpdateVariant {
  const found = training.variants(rank, steps).find((variant) => variant.precision === precision);
  if (found === undefined) throw new Error(`no variant in ${precision} serves rank ${rank}`);
  return found;
}

/** The best variant by rule with float32 tiles and A of every row in memory. */
export function portableVariant(training: HalfIterations, rank: number, steps: number): UpdateVariant {
  const found = training
    .variants(rank, steps)
    .find(({ sum, precision }) => sum.kernel === 'tiled' && precision === 'f32');
  if (found === undefined) throw new Error(`no float32 tiles for rank ${rank}`);
  return found;
}
