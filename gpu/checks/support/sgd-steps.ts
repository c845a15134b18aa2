/**
 * The expected result of SGD's kernels: the same steps in float64, with factors rounded to float16 after each
 * step if the kernel stores them so.
 */
import { stepInOrder } from '../../../cpu/reference/sgd.ts';
import type { Partition } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';
import type { SgdStepParams } from '../../sgd/sgd-step.ts';
import { type KernelCheck, deviation, worse } from './check.ts';
import type { SgdStep } from '../../../operators/tasks/tasks.ts';
import { factorsOf, randomFactors } from '../../../operators/tasks/sample-inputs.ts';
import { roundToHalf } from './float16.ts';
import type { OpenTask } from './run-kernel.ts';

/** Parameters of a kernel's steps. */
export interface StepShape {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  readonly adaptive: boolean;
  readonly lanes: number;
}

export interface Rating {
  readonly row: number;
  readonly column: number;
  readonly value: number;
}

/** The matrices that steps change, by the names of the tasks' outputs: factors, and AdaGrad's sums. */
export type Sides = Readonly<Record<'rows' | 'columns' | 'rowSums' | 'columnSums', Partition>>;

export const STEP_RATES = { rate: 0.03, rowLambda: 0.05, columnLambda: 0.11 } as const;

/** Limit of the deviation in float32, relative to the largest element. */
const LIMIT = 1e-5;
/**
 * Limit of the deviation for factors stored as float16: a value near the midpoint between two float16 numbers
 * may be rounded up or down.
 */
const HALF_LIMIT = 2 ** -9;

function describeShape({ rank, precision, biases, adaptive, lanes }: StepShape): string {
  return (
    `rank ${rank}, ${precision}${biases ? ', biases' : ''}${adaptive ? ', AdaGrad' : ''}, ` +
    `${lanes === 1 ? '1 thread' : `${lanes} threads`} a rating`
  );
}

/**
 * Random factors of rows and columns. With biases, each has one feature that is always 1. For AdaGrad also
 * positive sums of squared gradients.
 */
export function randomSides(rows: number, columns: number, { rank, biases }: StepShape, seed: number): Sides {
  const features = rank + (biases ? 2 : 0);
  const random = new CounterRandom(seed, 7);
  const side = (count: number, one: number, which: number) => {
    const matrix = randomFactors(count, features, seed + which);
    if (biases) for (let row = 0; row < count; row++) matrix.columns.values[row * features + one] = 1;
    return matrix;
  };
  const sums = (count: number, which: number) =>
    factorsOf(count, 1, (row) => 2 * random.uniform(2 * row + which));
  return {
    rows: side(rows, 1, 1),
    columns: side(columns, 0, 2),
    rowSums: sums(rows, 0),
    columnSums: sums(columns, 1),
  };
}

/** The matrices from which a task reads, by its names of inputs. */
export function sourcesOf({ rows, columns, rowSums, columnSums }: Sides) {
  return {
    sourceRows: rows,
    sourceColumns: columns,
    sourceRowSums: rowSums,
    sourceColumnSums: columnSums,
  };
}

/**
 * The factors of rows and columns after all runs of steps, executed one run after the other. Factors are
 * rounded to float16 after every step. `kept` names exceptions (rows, or rows and columns) that a kernel
 * keeps in registers: there the factors of a row or column stay in float64 while consecutive ratings of a run
 * have the same row or column.
 */
export function steppedSides(
  start: Sides,
  runs: readonly (readonly Rating[])[],
  { rank, precision, biases, adaptive }: StepShape,
  kept: 'none' | 'rows' | 'both',
): Readonly<Record<keyof Sides, Float64Array>> {
  const half = precision === 'f16';
  const stride = rank + (biases ? 2 : 0);
  const [p, q, rowSums, columnSums] = [start.rows, start.columns, start.rowSums, start.columnSums].map(
    ({ columns }) => Float64Array.from(columns.values, Number),
  );
  const sums = { rows: rowSums, columns: columnSums };
  const store = (values: Float64Array, row: number) => {
    for (let at = row * stride; at < (row + 1) * stride; at++) values[at] = roundToHalf(values[at]);
  };
  if (half) {
    for (let row = 0; row < start.rows.rows; row++) store(p, row);
    for (let column = 0; column < start.columns.rows; column++) store(q, column);
  }
  for (const ratings of runs) {
    ratings.forEach(({ row, column, value }, k) => {
      stepInOrder(
        p,
        q,
        stride,
        { rows: [row], columns: [column], values: [value] },
        { rank, biases, ...STEP_RATES },
        adaptive ? sums : undefined,
      );
      if (half && (kept !== 'both' || ratings[k + 1]?.column !== column)) store(q, column);
      if (half && (kept === 'none' || ratings[k + 1]?.row !== row)) store(p, row);
    });
  }
  return { rows: p, columns: q, rowSums: sums.rows, columnSums: sums.columns };
}

/** The largest deviation of the matrices after the steps; Infinity if padding or a constant 1 changed. */
export async function stepError(
  task: Pick<OpenTask<SgdStep>, 'fetch' | 'fetchPadded'>,
  start: Sides,
  expected: ReturnType<typeof steppedSides>,
  { rank, biases, adaptive, precision }: StepShape,
): Promise<{ error: number; limit: number }> {
  const features = rank + (biases ? 2 : 0);
  let error = 0;
  for (const [name, one] of [
    ['rows', 1],
    ['columns', 0],
  ] as const) {
    const padded = await task.fetchPadded(name);
    const stride = padded.length / start[name].rows;
    const found = padded.filter((_, at) => at % stride < features);
    const isWrong = padded.some((value, at) => {
      const feature = at % stride;
      return feature >= features ? value !== 0 : biases && feature === one && value !== 1;
    });
    error = worse(error, isWrong ? Infinity : deviation(found, expected[name]));
  }
  for (const name of adaptive ? (['rowSums', 'columnSums'] as const) : []) {
    const { columns } = await task.fetch(name);
    error = worse(error, deviation(columns.values as Float32Array, expected[name]));
  }
  return { error, limit: precision === 'f16' ? HALF_LIMIT : LIMIT };
}

export const f32 = { precision: 'f32', biases: false, adaptive: false, lanes: 1 } as const;
export const f16 = { ...f32, precision: 'f16' } as const;
export const both = { biases: true, adaptive: true } as const;

/** Ranks and numbers of threads per rating that together reach every branch of the kernels' text. */
export const stepShapes: readonly StepShape[] = [
  ...[1, 7, 10, 32, 64].map((rank) => ({ ...f32, rank })),
  ...[1, 10, 32].map((rank) => ({ ...f16, rank })),
  { ...f32, ...both, rank: 7 },
  { ...f16, ...both, rank: 30 },
  { ...f16, rank: 20, adaptive: true },
  ...[10, 64, 100, 128, 200, 512].map((rank) => ({ ...f32, rank, lanes: 4 })),
  ...[7, 100, 128].map((rank) => ({ ...f16, rank, lanes: 4 })),
  { ...f32, ...both, rank: 10, lanes: 4 },
  { ...f32, rank: 64, lanes: 4, biases: true },
  { ...f16, ...both, rank: 98, lanes: 4 },
  ...[8, 16, 32].flatMap((lanes) => [
    { ...f16, rank: 128, lanes },
    { ...f16, rank: 512, lanes },
    { ...f32, ...both, rank: 200, lanes },
  ]),
];

/** Makes a check of a kernel of SGD; `others` are the kernel's parameters that are not in `shape`. */
export function stepCheck<Others extends KernelParams>(
  kernel: KernelDescriptor<Omit<SgdStepParams, 'threads'> & Others>,
  { rank, biases, ...shape }: StepShape,
  what: string,
  others: Others,
  run: KernelCheck['run'],
): KernelCheck {
  const params = { ...shape, ...others, biases, features: rank + (biases ? 2 : 0) };
  return {
    name: kernel.name,
    variant: `${describeShape({ rank, biases, ...shape })}, ${what}`,
    admitted: (gpu) => gpu.admits(kernel, params),
    run,
  };
}
