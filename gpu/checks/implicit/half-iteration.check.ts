/** Checks of whole half-iterations of implicit data, by every variant that an adapter admits. */
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
  /** α; ratings below 0 and of 0 are among them. */
  readonly alpha: number;
}

const STEPS = 3;
const WEIGHT = 0.7;
const BASE = 1;

/**
 * Limit of CG's deviation from as many steps in float64: G has an eigenvalue far above the others, as A has
 * with biases (CG_BIAS_LIMIT).
 */
const CG_GRAM_LIMIT = 1e-3;

/** Limit of an exact residual with θ multiplied by roots of weights in float16. */
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
      run: (gpu: Gpu) => check(gpu, variant, shape, longest),
    })),
  );
}

/** Ratings below 0 and of 0 among those of a problem, and G in float64. */
const kept = keptBy((key) => {
  const problem = ratedProblem(JSON.parse(key) as RatedRowsOptions);
  const { values, theta, stride, rank, columns } = problem.ratings;
  for (let k = 2; k < values.length; k += 5) values[k] = k % 10 === 2 ? 0 : -values[k];
  return { problem, twin: gramMatrix(theta, stride, rank, columns, WEIGHT) };
});

async function check(
  gpu: Gpu,
  given: UpdateVariant,
  { rank, solver, alpha }: ImplicitShape,
  longest: number,
): Promise<{ error: number; limit: number }> {
  const variant = { ...given, partRatings: 500, regionBytes: 40_000, regionRatings: 1 };
  const half = variant.precision === 'f16';
  const lengths = [1, 0, 64, 65, longest, 33, 32, 31, 2, 700, 16, 130, 1];
  const { problem, twin } = kept(
    JSON.stringify({ rank, alpha, biases: false, precision: variant.precision, lengths }),
  );
  const { ratings } = problem;
  const { stride, columns } = ratings;
  const buffers = await problemBuffers(gpu, problem, 'f32');
  const mirror = await gpu.bufferOf(ratings.mirror, 'mirror');
  const shifts = Float32Array.from(lengths, (_, row) => 0.5 + row);
  const more = {
    mirror,
    gram: await gpu.buffer(4 * stride * stride, 'gram'),
    shifts: await gpu.bufferOf(shifts, 'shifts'),
    rowPointers: await gpu.bufferOf(ratings.offsets, 'offsets'),
  };
  const matrix = (values: GPUBuffer, rows: number, halves?: GPUBuffer): DeviceMatrix => ({
    rows,
    columns: rank,
    stride,
    values,
    half: halves,
  });
  const fixed = matrix(buffers.fixed, columns, half ? mirror : undefined);
  const pass = gpu.pass('check gram');
  await addGramMatrix(gpu, pass, fixed, more.gram, rank, WEIGHT);
  await pass.submit();
  const gram = new Float32Array(stride * stride);
  await gpu.download(more.gram, gram);
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
  const inputs = {
    block,
    fixed,
    previous: matrix(buffers.previous, lengths.length),
    factors: matrix(buffers.factors, lengths.length, half ? buffers.half : undefined),
    gram: more.gram,
    shifts: more.shifts,
  };
  const weights = { alpha, base: BASE };
  const { badRow } = await updateRows(gpu, inputs, {
    variant,
    from: 0,
    to: lengths.length,
    rank,
    lambda: 0,
    mean: 0,
    solver: solverNamed({ solver, cgSteps: STEPS }),
    scale: half ? 0.5 : 1,
    implicit: weights,
  });
  const outputs = await downloadOutputs(gpu, buffers, problem);
  destroyBuffers({ buffers, more, lists: [...block.prepared.values()] });
  let error = badRow === -1 ? 0 : Infinity;
  if (gramError(gram, twin, rank, stride) > 10 * PRODUCT_LIMIT) error = Infinity;
  lengths.forEach((_, row) => {
    const { x, wrong } = solvedRow({ rank, stride }, row, {
      factors: outputs.factors,
      half: half ? outputs.half : undefined,
    });
    error = worse(error, worse(wrong, rowError(problem, row, x, twin, weights, shifts[row], solver, half)));
  });
  const tensor = variant.sum.kernel === 'tensor';
  if (solver === 'nonnegative') return { error, limit: 1 };
  return {
    error,
    limit:
      solver === 'cholesky'
        ? tensor
          ? HALF_LIMIT
          : RESIDUAL_LIMIT
        : tensor
          ? 2 * CG_TENSOR_LIMIT
          : CG_GRAM_LIMIT,
  };
}

function rowError(
  problem: RatedProblem,
  row: number,
  x: Float64Array,
  gram: Float64Array,
  weights: { readonly alpha: number; readonly base: number },
  shift: number,
  solver: ImplicitShape['solver'],
  half: boolean,
): number {
  const { ratings, lengths, previous } = problem;
  const { rank, stride, theta, offsets } = ratings;
  if (lengths[row] === 0) return Math.hypot(...x);
  const part = {
    indices: ratings.indices.subarray(offsets[row], offsets[row + 1]),
    values: ratings.values.subarray(offsets[row], offsets[row + 1]),
  };
  const equations = rowEquations(problem, row, () =>
    implicitEquations(gram, theta, stride, rank, part, weights, shift),
  );
  if (solver === 'nonnegative')
    return minimumError(equations, x, false, half ? { gradient: HALF_LIMIT, distance: 10 * HALF_LIMIT } : {});
  if (solver === 'cholesky') return relativeResidual(equations, x);
  return deviation(
    x,
    conjugateGradient(
      equations.matrix,
      equations.bias,
      Float64Array.from(previous.subarray(row * stride, row * stride + rank)),
      STEPS,
    ),
  );
}

/** The largest difference over the largest element; Infinity where the padding is not 0. */
function gramError(found: Float32Array, twin: Float64Array, rank: number, stride: number): number {
  const own = Float64Array.from(twin, (_, at) => found[Math.floor(at / rank) * stride + (at % rank)]);
  const padding = found.some((value, at) => value !== 0 && (at % stride >= rank || at >= rank * stride));
  return padding ? Infinity : deviation(own, twin);
}
