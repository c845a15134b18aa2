/**
 * Checks of half-iterations in which each device has a range of the rows of θ (cuMF's vertical parts) and
 * only the ratings of these columns. Normal equations are summed over the devices and compared with float64.
 * Then rows are solved from these sums and also compared.
 */
import { equationsOfRow } from '../../../cpu/reference/equations.ts';
import { destroyBuffers, type DeviceMatrix, strideOf } from '../../device/resources.ts';
import { addEquations } from '../../equations/normal-equations.task.ts';
import { solveRows } from '../../equations/solve-equations.task.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { solverNamed, type UpdateVariant } from '../../update/choice/variant.ts';
import { updateVariants } from '../../update/choice/variants.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import {
  type KernelCheck,
  deviation,
  worse,
  CG_HALF_LIMIT,
  CG_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
  RESIDUAL_LIMIT,
} from '../support/check.ts';
import {
  commonProblem,
  problemBuffers,
  problemError,
  type RatedProblem,
  uploadImplicit,
  destroyParts,
  lengthsTo,
  problemParts,
} from '../support/rated-problem.ts';
import { equationValues } from '../../equations/equation-slots.ts';

/** The kind of problem to solve, with θ in p parts. Problems of implicit data are solved by Cholesky. */
export interface DataParallelShape {
  readonly rank: number;
  readonly solver: UpdateProblem['solver'];
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly p: number;
}

const STEPS = 6;

/**
 * Limits of the error of sums, relative to the largest number in a row's equations: with factors in float32,
 * on tensor cores, and on tensor cores with rows of θ that are multiplied by the roots of weights in float16.
 */
const SUM_LIMIT = 1e-5;
const TENSOR_SUM_LIMIT = 1e-4;
const WEIGHTED_HALF_LIMIT = 1e-3;
/** Limit of the residual of rows solved from sums in float16. */
const WEIGHTED_RESIDUAL_LIMIT = 2e-3;

const shapes: readonly DataParallelShape[] = [
  { rank: 10, solver: 'cg', kind: 'explicit', p: 3 },
  { rank: 64, solver: 'cholesky', kind: 'explicit', p: 2 },
  { rank: 100, solver: 'cg', kind: 'explicit', p: 5 },
  { rank: 200, solver: 'cg', kind: 'explicit', p: 2 },
  { rank: 64, solver: 'nonnegative', kind: 'explicit', p: 2 },
  { rank: 33, solver: 'cg', kind: 'biases', p: 3 },
  { rank: 100, solver: 'cholesky', kind: 'biases', p: 2 },
  { rank: 64, solver: 'cholesky', kind: 'implicit', p: 3 },
  { rank: 100, solver: 'cholesky', kind: 'implicit', p: 2 },
];

/**
 * Checks of all kernels that the adapter supports for summing equations; the longest row has `longest`
 * ratings.
 */
export function dataParallelChecks(
  info: GpuInfo,
  longest: number,
  among: readonly DataParallelShape[] = shapes,
): KernelCheck[] {
  return among.flatMap((shape) => {
    const { rank, solver, kind, p } = shape;
    const problem = {
      rank,
      solver,
      biases: kind === 'biases',
      implicit: kind === 'implicit',
      cgSteps: STEPS,
    } as const;
    return updateVariants(info, problem)
      .filter(
        ({ fused, short, sum }) =>
          fused === undefined && short === 0 && sum.kernel !== 'int8' && sum.kernel !== 'vectors',
      )
      .map((variant) => ({
        name: 'data-parallel',
        variant: `${variant.name}, rank ${rank}, ${solver}, ${kind}, ${p} parts`,
        run: (gpu: Gpu) => check(gpu, variant, shape, longest),
      }));
  });
}

async function check(
  gpu: Gpu,
  given: UpdateVariant,
  shape: DataParallelShape,
  longest: number,
): Promise<{ error: number; limit: number }> {
  const { rank, kind } = shape;
  const variant = { ...given, partRatings: 500 };
  const biases = kind === 'biases';
  const problem = commonProblem({
    rank,
    biases,
    precision: variant.precision,
    lengths: lengthsTo(longest),
    ...(kind === 'implicit' && { implicit: { alpha: 3 } }),
  });
  const { implicit } = problem;
  const buffers = await problemBuffers(gpu, problem, 'f32');
  const equations = await summedEquations(gpu, problem, variant, shape);
  const found = new Float32Array(equations.rows * equations.stride);
  await gpu.download(equations.values, found);
  const solved = await solvedError(gpu, problem, { variant, shape, buffers, equations });
  destroyBuffers({ buffers, equations });
  const tensor = variant.sum.kernel === 'tensor';
  const sumLimit = tensor ? (implicit ? WEIGHTED_HALF_LIMIT : TENSOR_SUM_LIMIT) : SUM_LIMIT;
  return {
    error: worse(
      equationsError(problem, found, equations.stride) / sumLimit,
      solved / limitOf(variant, shape),
    ),
    limit: 1,
  };
}

/** The equations of all rows, summed over all vertical parts. */
async function summedEquations(
  gpu: Gpu,
  problem: RatedProblem,
  variant: UpdateVariant,
  { rank, p }: DataParallelShape,
): Promise<DeviceMatrix> {
  const { ratings, biases, lengths, implicit } = problem;
  const rows = lengths.length;
  const columns = equationValues({ rank, biases }).COLUMNS;
  const stride = strideOf(columns);
  const values = await gpu.bufferOf(new Float32Array(rows * stride), 'equations');
  const equations = { rows, columns, stride, values };
  const parts = await problemParts(gpu, problem, p);
  for (const part of parts)
    await addEquations(
      gpu,
      { fixedBias: undefined, ...part, equations },
      {
        variant,
        from: 0,
        to: rows,
        rank,
        rowStart: 0,
        mean: ratings.mean,
        scale: variant.precision === 'f16' ? 0.5 : 1,
        ...(implicit ? { implicit: implicit.weights } : {}),
      },
    );
  destroyParts(parts);
  return equations;
}

/** The error of the rows solved from equations. */
async function solvedError(
  gpu: Gpu,
  problem: RatedProblem,
  {
    variant,
    shape: { rank, solver },
    buffers,
    equations,
  }: {
    readonly variant: UpdateVariant;
    readonly shape: DataParallelShape;
    readonly buffers: Readonly<Record<'previous' | 'factors' | 'half' | 'bias', GPUBuffer>>;
    readonly equations: DeviceMatrix;
  },
): Promise<number> {
  const { implicit } = problem;
  const half = variant.precision === 'f16';
  const { rows } = equations;
  const nonnegative = solver === 'nonnegative';
  const matrix = (values: GPUBuffer, halves?: GPUBuffer): DeviceMatrix => ({
    rows,
    columns: rank,
    stride: problem.ratings.stride,
    values,
    half: halves,
  });
  const more = implicit ? await uploadImplicit(gpu, problem) : {};
  const inputs = {
    equations,
    previous: matrix(buffers.previous),
    factors: matrix(buffers.factors, half ? buffers.half : undefined),
    ...(problem.biases ? { bias: buffers.bias } : {}),
    ...more,
  };
  const { badRow } = await solveRows(gpu, inputs, {
    variant,
    from: 0,
    to: rows,
    rank,
    rowStart: 0,
    ...(implicit ? { lambda: 0 } : problem.regularization),
    solver: solverNamed({ solver, cgSteps: STEPS }),
  });
  destroyBuffers({ more });
  if (badRow !== -1) return Infinity;
  const steps = solver === 'cg' ? STEPS : 0;
  return problemError(gpu, problem, buffers, half, { steps, exactTo: -1, nonnegative });
}

/** The largest deviation of a row's equations from float64; Infinity if the padding is not 0. */
function equationsError(
  { ratings, lengths, biases, implicit }: RatedProblem,
  found: Float32Array,
  stride: number,
): number {
  let error = 0;
  lengths.forEach((length, row) => {
    const twin = equationsOfRow(
      ratings.theta,
      ratings.stride,
      ratings.rank,
      ratings.part(ratings.offsets[row], length),
      { biases, ...(implicit ? { implicit: implicit.weights } : {}) },
    );
    const own = found.subarray(row * stride, (row + 1) * stride);
    error = worse(
      error,
      own.subarray(twin.length).some((value) => value !== 0)
        ? Infinity
        : deviation(Float64Array.from(own.subarray(0, twin.length)), twin),
    );
  });
  return error;
}

function limitOf({ halfA, sum }: UpdateVariant, { solver, kind }: DataParallelShape): number {
  const tensor = sum.kernel === 'tensor';
  if (solver === 'nonnegative') return 1;
  if (solver === 'cholesky') return kind === 'implicit' && tensor ? WEIGHTED_RESIDUAL_LIMIT : RESIDUAL_LIMIT;
  if (kind === 'biases') return CG_TENSOR_BIAS_LIMIT;
  if (halfA) return CG_HALF_LIMIT;
  return tensor ? CG_TENSOR_LIMIT : CG_LIMIT;
}
