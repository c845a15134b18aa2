/** Checks of whole half-iterations of implicit data, for every variant that an adapter supports. */
import { conjugateGradient } from '../../../cpu/reference/conjugate-gradient.ts';
import { gramMatrix, implicitEquations } from '../../../cpu/reference/implicit.ts';
import { destroyBuffers, type DeviceMatrix } from '../../device/resources.ts';
import { updateRows } from '../../update/half-iteration.ts';
import { addGramMatrix } from '../../implicit/gram.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { solverNamed, type UpdateVariant } from '../../update/choice/variant.ts';
import { updateVariants } from '../../update/choice/variants.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import type { KernelCheck } from '../support/check.ts';
import { CG_TENSOR_LIMIT, PRODUCT_LIMIT, RESIDUAL_LIMIT } from '../support/limits.ts';
import { minimumError } from '../support/minima.ts';
import { deviation, worse } from '../support/numbers.ts';
import {
  keptBy,
  problemBuffers,
  ratedProblem,
  type RatedProblem,
  rowEquations,
} from '../support/rated-problem.ts';
import type { RatedRowsOptions } from '../support/rated-rows.ts';
import { downloadOutputs, relativeResidual, solvedRow } from '../support/solved-rows.ts';

export interface ImplicitShape {
  readonly rank: number;
  readonly solver: UpdateProblem['solver'];
  /** α. Some ratings are 0 or negative. */
  readonly alpha: number;
}

const STEPS = 3;
const WEIGHT = 0.7;
const BASE = 1;

/**
 * Limit of the deviation from the same number of CG steps in float64. One eigenvalue of A is far above the
 * others, as with biases (CG_BIAS_LIMIT): here it is an eigenvalue of the Gram matrix G.
 */
const CG_GRAM_LIMIT = 1e-3;

/**
 * Limit of the residual of exact solutions if rows of θ are multiplied by the roots of weights in float16.
 */
const HALF_LIMIT = 2e-3;

export const implicitShapes: readonly ImplicitShape[] = [
  ...[10, 64, 100, 128, 200].flatMap((rank) =>
    (['cg', 'cholesky'] as const).map((solver) => ({ rank, solver, alpha: 3 })),
  ),
  { rank: 64, solver: 'cg', alpha: 40 },
  ...[10, 64, 128].map((rank) => ({ rank, solver: 'nonnegative' as const, alpha: 3 })),
];

/** The longest row has `longest` ratings. */
export function implicitChecks(
  info: GpuInfo,
  longest: number,
  among: readonly ImplicitShape[] = implicitShapes,
): KernelCheck[] {
  return among.flatMap((shape) =>
    updateVariants(info, {
      ...shape,
      biases: false,
      implicit: true,
    }).map((variant) => ({
      name: 'implicit-half-iteration',
      variant: `${variant.name}, rank ${shape.rank}, ${shape.solver}, alpha ${shape.alpha}`,
      run: (gpu: Gpu) => checkImplicit(gpu, variant, shape, longest),
    })),
  );
}

/** A problem in which some ratings are 0 and some are negative, and its Gram matrix G in float64. */
const kept = keptBy((key) => {
  const problem = ratedProblem(JSON.parse(key) as RatedRowsOptions);
  const { values, theta, stride, rank, columns } = problem.ratings;
  for (let k = 2; k < values.length; k += 5) values[k] = k % 10 === 2 ? 0 : -values[k];
  return { problem, twin: gramMatrix(theta, stride, rank, columns, WEIGHT) };
});

/** Solves the rows of a small problem with one variant and compares them with float64. */
export async function checkImplicit(
  gpu: Gpu,
  given: UpdateVariant,
  shape: ImplicitShape,
  longest: number,
): Promise<{ error: number; limit: number }> {
  const regions = given.regions && { bytes: 40_000, ratings: 1 };
  const variant = { ...given, partRatings: 500, regions };
  const { precision } = variant;
  const lengths = [1, 0, 64, 65, longest, 33, 32, 31, 2, 700, 16, 130, 1];
  const { rank, alpha } = shape;
  const { problem, twin } = kept(JSON.stringify({ rank, alpha, biases: false, precision, lengths }));
  const rows: ImplicitRows = { ...shape, problem, twin, half: precision === 'f16' };
  const limit = limitOf(shape.solver, variant.sum.kernel === 'tensor');
  return { error: largestError(rows, await solve(gpu, variant, rows)), limit };
}

/** Rows to be solved, and G in float64. */
interface ImplicitRows extends ImplicitShape {
  readonly problem: RatedProblem;
  readonly twin: Float64Array;
  /** True where θ and the solved rows are in float16. */
  readonly half: boolean;
}

/** The output of a half-iteration. */
interface Solved {
  readonly gram: Float32Array;
  readonly badRow: number;
  readonly factors: Float32Array;
  readonly half: Uint32Array;
}

/** The regularization of a row. */
const shiftOf = (row: number) => 0.5 + row;

function limitOf(solver: ImplicitShape['solver'], tensor: boolean): number {
  if (solver === 'nonnegative') return 1;
  if (solver === 'cholesky') return tensor ? HALF_LIMIT : RESIDUAL_LIMIT;
  return tensor ? 2 * CG_TENSOR_LIMIT : CG_GRAM_LIMIT;
}

async function solve(gpu: Gpu, variant: UpdateVariant, rows: ImplicitRows): Promise<Solved> {
  const { problem, rank, solver, alpha, half } = rows;
  const { ratings, lengths } = problem;
  const { stride, columns } = ratings;
  const buffers = await problemBuffers(gpu, problem, 'f32');
  const mirror = await gpu.bufferOf(ratings.mirror, 'mirror');
  const more = {
    mirror,
    gram: await gpu.buffer(4 * stride * stride, 'gram'),
    shifts: await gpu.bufferOf(
      Float32Array.from(lengths, (_, row) => shiftOf(row)),
      'shifts',
    ),
    rowPointers: await gpu.bufferOf(ratings.offsets, 'offsets'),
  };
  const matrix = (values: GPUBuffer, count: number, halves?: GPUBuffer): DeviceMatrix => ({
    rows: count,
    columns: rank,
    stride,
    values,
    half: halves,
  });
  const fixed = matrix(buffers.fixed, columns, half ? mirror : undefined);
  const gram = await addedGram(gpu, fixed, more.gram);
  const block = {
    rows: lengths.length,
    ratings: ratings.indices.length,
    offsets: ratings.offsets,
    columns: ratings.indices,
    rowPointers: more.rowPointers,
    indices: buffers.indices,
    values: buffers.values,
    prepared: new Map<string, unknown>(),
  };
  const previous = matrix(buffers.previous, lengths.length);
  const factors = matrix(buffers.factors, lengths.length, half ? buffers.half : undefined);
  const inputs = { block, fixed, previous, factors, gram: more.gram, shifts: more.shifts };
  const { badRow } = await updateRows(gpu, inputs, {
    variant,
    from: 0,
    to: lengths.length,
    rank,
    lambda: 0,
    mean: 0,
    solver: solverNamed({ solver, cgSteps: STEPS }),
    scale: half ? 0.5 : 1,
    implicit: { alpha, base: BASE },
  });
  const outputs = await downloadOutputs(gpu, buffers, problem);
  destroyBuffers({ buffers, more, lists: [...block.prepared.values()] });
  return { ...outputs, gram, badRow };
}

/** Adds G of the fixed rows to a buffer, and reads it. */
async function addedGram(gpu: Gpu, fixed: DeviceMatrix, buffer: GPUBuffer): Promise<Float32Array> {
  const pass = gpu.pass('check gram');
  await addGramMatrix(gpu, pass, fixed, buffer, fixed.columns, WEIGHT);
  await pass.submit();
  const gram = new Float32Array(fixed.stride ** 2);
  await gpu.download(buffer, gram);
  return gram;
}

/**
 * The largest error of the solved rows, with G checked as well; Infinity if G is wrong or a row was reported
 * as bad.
 */
function largestError(rows: ImplicitRows, { gram, badRow, factors, half }: Solved): number {
  const { rank, problem, twin } = rows;
  const { stride } = problem.ratings;
  if (badRow !== -1 || gramError(gram, twin, rank, stride) > 10 * PRODUCT_LIMIT) return Infinity;
  const outputs = { factors, half: rows.half ? half : undefined };
  return problem.lengths.reduce((error, _, row) => {
    const { x, wrong } = solvedRow({ rank, stride }, row, outputs);
    return worse(error, worse(wrong, rowError(rows, row, x)));
  }, 0);
}

function rowError(
  { problem, twin, alpha, solver, half }: ImplicitRows,
  row: number,
  x: Float64Array,
): number {
  const { ratings, lengths, previous } = problem;
  const { rank, stride, theta, offsets } = ratings;
  if (lengths[row] === 0) return Math.hypot(...x);
  const part = {
    indices: ratings.indices.subarray(offsets[row], offsets[row + 1]),
    values: ratings.values.subarray(offsets[row], offsets[row + 1]),
  };
  const weights = { alpha, base: BASE };
  const equations = rowEquations(problem, row, () =>
    implicitEquations(twin, theta, stride, rank, part, weights, shiftOf(row)),
  );
  if (solver === 'nonnegative')
    return minimumError(equations, x, false, half ? { gradient: HALF_LIMIT, distance: 10 * HALF_LIMIT } : {});
  if (solver === 'cholesky') return relativeResidual(equations, x);
  const start = Float64Array.from(previous.subarray(row * stride, row * stride + rank));
  return deviation(x, conjugateGradient(equations.matrix, equations.bias, start, STEPS));
}

/** The largest error of G, relative to its largest element; Infinity if the padding is not 0. */
function gramError(found: Float32Array, twin: Float64Array, rank: number, stride: number): number {
  const own = Float64Array.from(twin, (_, at) => found[Math.floor(at / rank) * stride + (at % rank)]);
  const padding = found.some((value, at) => value !== 0 && (at % stride >= rank || at >= rank * stride));
  return padding ? Infinity : deviation(own, twin);
}
