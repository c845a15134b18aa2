import {
  gramMatrix,
  implicitEquations,
  type NormalEquations,
} from '../../../cpu/reference/normal-equations.ts';
import { multiply, solveNonnegative } from '../../../cpu/reference/solvers.ts';
import { leftOfBias } from '../../../cpu/reference/update.ts';
import type { RowRegularization } from '../../../operators/tasks/task-types.ts';
import type { ImplicitWeights } from '../../../operators/tasks/tasks.ts';
import { destroyBuffers, type DeviceBlock, type DeviceMatrix } from '../../device/resources.ts';
import { addGramMatrix } from '../../implicit/gram.task.ts';
import type { UpdateSettings } from '../../update/choice/variant.ts';
import type { SolvedPass } from '../../update/solved-pass.ts';
import { updateRows } from '../../update/update.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { deviation, randomNumbers, worse, RESIDUAL_LIMIT } from './check.ts';
import {
  partEquations,
  ratedBuffers,
  type RatedRows,
  ratedRows,
  type RatedRowsOptions,
  downloadOutputs,
  expectedSteps,
  otherRowsKept,
  regularizationFor,
  regularized,
  relativeResidual,
  type RowData,
  rowData,
  solvedRow,
  uploadRowData,
} from './rated-rows.ts';
import { uploadAll } from './run-kernel.ts';

/** Ratings of the longest row in checks of kernels on tensor cores. */
export const LONGEST = 10_000;

/** Rows to be solved from their ratings, with initial factors, regularization, and memory for the outputs. */
export interface RatedProblem extends RowData {
  readonly ratings: RatedRows;
  readonly biases: boolean;
  readonly lengths: readonly number[];
  readonly regularization: RowRegularization;
  /** For implicit data, whose rows are shifted by shiftOf: the weights, and the Gram matrix of θ. */
  readonly implicit?: { readonly weights: ImplicitWeights; readonly gram: () => Float64Array };
}

export interface RatedProblemOptions extends RatedRowsOptions {
  /** Implicit data; `signed`: some ratings are 0 or negative. */
  readonly implicit?: { readonly alpha: number; readonly signed?: boolean };
}

/** For implicit data: the factor of ΘᵀΘ in the Gram matrix, and the regularization of a row. */
export const GRAM_WEIGHT = 0.7;
export const shiftOf = (row: number) => 0.5 + row;

/** Method and settings by which rows are solved. */
export interface Expectation {
  /**
   * Number of CG steps; the result is compared with the same number of steps in float64. 0: exact solutions,
   * checked by their residual.
   */
  readonly steps: number;
  /** Longest row that is solved exactly even with CG; -1 for none. */
  readonly exactTo: number;
  /** True for exact minima over x >= 0. Their error is then already divided by its limit. */
  readonly nonnegative?: boolean;
  /** Limits of the distance to such a minimum, in place of minimumError's. */
  readonly minimum?: Parameters<typeof minimumError>[3];
  /** The objectives that the kernel wrote: one for each row, or their sum. Not checked where absent. */
  readonly objectives?: ArrayLike<number>;
}

export function ratedProblem({ implicit, ...options }: RatedProblemOptions): RatedProblem {
  const { rank, lengths, biases, level } = options;
  const ratings = ratedRows(options);
  const { values, theta, stride, columns } = ratings;
  if (implicit?.signed) for (let k = 2; k < values.length; k += 5) values[k] = k % 10 === 2 ? 0 : -values[k];
  let gram: Float64Array | undefined;
  return {
    ratings,
    biases,
    lengths,
    regularization: regularizationFor(biases, level),
    ...(implicit && {
      implicit: {
        weights: { alpha: implicit.alpha, base: 1 },
        gram: () => (gram ??= gramMatrix(theta, stride, rank, columns, GRAM_WEIGHT)),
      },
    }),
    ...rowData(lengths.length, rank, randomNumbers(rank + 1)),
  };
}

/** Problems that are kept for later checks, at most. */
const KEPT = 4;

const kept = new Map<string, RatedProblem>();

/**
 * Like ratedProblem, for checks of many variants on the same data: problems and their float64 equations are
 * computed once and shared. Checks must not change the problem.
 */
export function commonProblem(options: RatedProblemOptions): RatedProblem {
  const key = JSON.stringify(options);
  const problem = kept.get(key) ?? ratedProblem(options);
  kept.delete(key);
  kept.set(key, problem);
  for (const oldest of kept.keys()) if (kept.size > KEPT) kept.delete(oldest);
  return problem;
}

const known = new WeakMap<RatedProblem, Map<number, NormalEquations>>();

/** The equations of a row in float64, with its regularization. */
function equationsOf(problem: RatedProblem, row: number): NormalEquations {
  const rows = known.get(problem) ?? new Map<number, NormalEquations>();
  known.set(problem, rows);
  const equations = rows.get(row) ?? madeEquations(problem, row);
  rows.set(row, equations);
  return equations;
}

function madeEquations(problem: RatedProblem, row: number): NormalEquations {
  const { ratings, lengths, biases, regularization, implicit } = problem;
  const { theta, stride, rank, offsets } = ratings;
  const [first, count] = [offsets[row], lengths[row]];
  if (implicit === undefined)
    return regularized(partEquations(ratings, first, count), count, biases, regularization);
  const { weights, gram } = implicit;
  return implicitEquations(gram(), theta, stride, rank, ratings.part(first, count), weights, shiftOf(row));
}

/**
 * Uploads the buffers of a half-iteration; keys are the names of the kernels' bindings. Lists of rows are not
 * included.
 */
export async function problemBuffers(
  gpu: Gpu,
  problem: RatedProblem,
  precision: 'f32' | 'f16' | 'int8',
  raw = false,
) {
  return {
    ...(await ratedBuffers(gpu, problem.ratings, precision, raw)),
    ...(await uploadRowData(gpu, problem)),
  };
}

/** The largest error of the solved rows in `buffers`; see outputsError. */
export async function problemError(
  gpu: Gpu,
  problem: RatedProblem,
  buffers: Readonly<Record<string, GPUBuffer>>,
  half: boolean,
  expectation: Expectation,
): Promise<number> {
  return outputsError(problem, await downloadOutputs(gpu, buffers, problem), half, expectation);
}

/** The largest error of the solved rows; Infinity if something that must be exact is wrong. */
export function outputsError(
  problem: RatedProblem,
  outputs: Pick<RowData, 'factors' | 'half' | 'bias'>,
  half: boolean,
  expectation: Expectation,
): number {
  const { ratings, lengths, biases } = problem;
  const { rank, stride } = ratings;
  if (!otherRowsKept({ count: lengths.length, stride }, outputs.factors)) return Infinity;
  let error = 0;
  const objectives: { readonly value: number; readonly size: number }[] = [];
  for (let row = 0; row < lengths.length; row++) {
    const { x, wrong } = solvedRow({ rank, stride }, row, {
      factors: outputs.factors,
      half: half ? outputs.half : undefined,
      bias: biases ? outputs.bias : undefined,
    });
    error = worse(error, wrong === 0 ? rowError(problem, row, x, expectation) : wrong);
    objectives.push(rowObjective(problem, row, x));
  }
  const { objectives: found } = expectation;
  return found === undefined || objectivesAgree(found, objectives, half) ? error : Infinity;
}

/**
 * The objective xᵀA x - 2 bᵀx of a row, with its bias, in float64; and the magnitude of its terms and of Σ
 * r², to which errors are relative.
 */
function rowObjective(
  problem: RatedProblem,
  row: number,
  x: Float64Array,
): { readonly value: number; readonly size: number } {
  const { ratings, lengths } = problem;
  if (lengths[row] === 0) return { value: 0, size: 0 };
  const { matrix, bias } = equationsOf(problem, row);
  const along = x.reduce((sum, value, i) => sum + value * bias[i], 0);
  const squares = multiply(matrix, x).reduce((sum, value, i) => sum + value * x[i], 0);
  const ofRatings = ratings.values
    .subarray(ratings.offsets[row], ratings.offsets[row + 1])
    .reduce((sum, value) => sum + value * value, 0);
  return { value: squares - 2 * along, size: squares + 2 * Math.abs(along) + ofRatings };
}

/**
 * True if the objectives that a kernel wrote, or their sum, agree with float64. `half`: A and the ratings
 * were rounded to float16, which allows larger differences.
 */
function objectivesAgree(
  found: ArrayLike<number>,
  expected: readonly { readonly value: number; readonly size: number }[],
  half: boolean,
): boolean {
  const near = (got: number, value: number, size: number) =>
    Math.abs(got - value) <= (half ? 1e-3 : 1e-5) * size;
  if (found.length > 1) return expected.every(({ value, size }, row) => near(found[row], value, size));
  const sum = (of: 'value' | 'size') => expected.reduce((all, one) => all + one[of], 0);
  return near(found[0], sum('value'), sum('size'));
}

function rowError(
  problem: RatedProblem,
  row: number,
  x: Float64Array,
  { steps, exactTo, nonnegative = false, minimum }: Expectation,
): number {
  const { ratings, biases, lengths, previous } = problem;
  const { rank, stride } = ratings;
  if (lengths[row] === 0) return Math.hypot(...x);
  const equations = equationsOf(problem, row);
  if (nonnegative) return minimumError(equations, x, biases, minimum);
  if (steps === 0 || lengths[row] <= exactTo) return relativeResidual(equations, x);
  const start = Float64Array.from(previous.subarray(row * stride, row * stride + rank));
  return deviation(x, expectedSteps(equations, biases, start, steps));
}

/**
 * Row lengths around multiples of a bin, the number of ratings that a kernel takes at a time: just below and
 * above one bin, and around the four bins of its ring buffer. There are more rows than workgroups.
 */
export function lengthsAround(bin: number): number[] {
  return [LONGEST, 0, 5 * bin + 1, 4 * bin, 3 * bin - 1, bin + 1, bin, bin - 1, 17, 16, 15, 2, 1, 0, 1];
}

/**
 * Measures the error of minima over x >= 0, which a kernel computed, by their gradients and against float64.
 */

/**
 * Largest rank at which the minimum is also computed in float64, which takes f⁵ operations. Above it only
 * gradients are checked.
 */
const TWIN_RANKS = 64;

/**
 * Limit of the deviation from the float64 minimum, relative to its largest element: the condition number of A
 * times the largest gradient that is accepted as 0.
 */
const NONNEGATIVE_LIMIT = 2e-3;

/**
 * The larger of two errors of x (with biases: [x, β]), each divided by its limit: the error of its gradients,
 * and its deviation from the float64 minimum. With biases, β must follow from the factors by elimination, for
 * which A must be positive definite.
 */
export function minimumError(
  equations: NormalEquations,
  x: Float64Array,
  biases: boolean,
  {
    gradient = RESIDUAL_LIMIT,
    distance = NONNEGATIVE_LIMIT,
  }: { readonly gradient?: number; readonly distance?: number } = {},
): number {
  const { factors, biasOf } = biases ? leftOfBias(equations) : { factors: equations, biasOf: undefined };
  const found = x.subarray(0, factors.bias.length);
  const error = gradientError(factors, found) / gradient;
  if (found.length > TWIN_RANKS)
    return worse(error, biasOf ? Math.abs(biasOf(found) - x[found.length]) / distance : 0);
  const expected = solveNonnegative(factors);
  if (expected === undefined) return Infinity;
  const whole = biasOf ? [...expected, biasOf(expected)] : expected;
  return worse(error, deviation(x, whole) / distance);
}

/**
 * The largest component of the gradient A x - b in whose direction the objective could still decrease within
 * x >= 0, relative to ‖b‖. Infinity if an element of x is negative.
 */
export function gradientError({ matrix, bias }: NormalEquations, x: Float64Array): number {
  const product = multiply(matrix, x);
  const left = x.map((value, i) =>
    value < 0 ? Infinity : value > 0 ? Math.abs(product[i] - bias[i]) : Math.max(0, bias[i] - product[i]),
  );
  return Math.max(...left) / (Math.hypot(...bias) || 1);
}

/** What a half-iteration wrote and returned. */
interface SolvedProblem
  extends Pick<RowData, 'factors' | 'half' | 'bias'>, Pick<SolvedPass, 'badRow' | 'objective'> {
  /** For implicit data, the Gram matrix that the GPU computed: stride x stride. */
  readonly gram: Float32Array;
}

/** Solves all rows of a problem by one half-iteration. */
export async function solveProblem(
  gpu: Gpu,
  problem: RatedProblem,
  settings: Pick<UpdateSettings, 'variant' | 'solver' | 'scale' | 'measured'>,
): Promise<SolvedProblem> {
  const { ratings, lengths, biases, implicit, regularization } = problem;
  const { rank, stride, offsets, columns } = ratings;
  const rows = lengths.length;
  const gram = new Float32Array(implicit ? stride * stride : 4);
  const buffers = {
    ...(await problemBuffers(gpu, problem, 'f32', true)),
    ...(await uploadAll(gpu, {
      mirror: ratings.mirror,
      rowPointers: offsets,
      gram,
      shifts: Float32Array.from(lengths, (_, row) => shiftOf(row)),
    })),
  };
  const half = settings.variant.precision !== 'f32';
  const matrix = (values: GPUBuffer, count: number, mirror?: GPUBuffer): DeviceMatrix => ({
    rows: count,
    columns: rank,
    stride,
    values,
    half: half ? mirror : undefined,
  });
  const fixed = matrix(buffers.fixed, columns, buffers.mirror);
  if (implicit) {
    const pass = gpu.pass('check gram');
    await addGramMatrix(gpu, pass, fixed, buffers.gram, rank, GRAM_WEIGHT);
    await pass.submit();
    await gpu.download(buffers.gram, gram);
  }
  const block: DeviceBlock = {
    rows,
    ratings: offsets[rows],
    offsets,
    columns: ratings.indices,
    rowPointers: buffers.rowPointers,
    indices: buffers.indices,
    values: buffers.values,
    prepared: new Map(),
  };
  const inputs = {
    block,
    fixed,
    previous: matrix(buffers.previous, rows),
    factors: matrix(buffers.factors, rows, buffers.half),
    ...(biases && { fixedBias: buffers.fixed_bias, bias: buffers.bias }),
    ...(implicit && { gram: buffers.gram, shifts: buffers.shifts }),
  };
  const { badRow, objective } = await updateRows(gpu, inputs, {
    ...settings,
    from: 0,
    to: rows,
    rank,
    ...(implicit ? { lambda: 0, implicit: implicit.weights } : regularization),
    mean: biases ? ratings.mean : 0,
  });
  const outputs = await downloadOutputs(gpu, buffers, problem);
  destroyBuffers({ buffers, lists: [...block.prepared.values()] });
  return { ...outputs, badRow, objective, gram };
}
