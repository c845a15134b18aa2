/** Checks of whole half-iterations, for every variant that an adapter supports. */
import type { UpdateProblem } from '../../operators/tasks/tasks.ts';
import { solverNamed, type UpdateVariant, REGIONS } from '../update/choice/variant.ts';
import { updateVariants } from '../update/choice/variants.ts';
import {
  chooseVectorProducts,
  vectorProductsKernel,
  type VectorProductsParams,
} from '../vectors/products.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import {
  type KernelCheck,
  deviation,
  CG_GRAM_LIMIT,
  CG_HALF_LIMIT,
  CG_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
  PRODUCT_LIMIT,
  RESIDUAL_LIMIT,
  ROOTS_LIMIT,
  variantOf,
} from './support/check.ts';
import { commonProblem, outputsError, type RatedProblem, solveProblem } from './support/rated-problem.ts';

export interface HalfIterationShape {
  readonly rank: number;
  readonly solver: UpdateProblem['solver'];
  readonly biases?: boolean;
  /** α of implicit data, of which some ratings are 0 or negative; absent for explicit data. */
  readonly alpha?: number;
}

const CG_STEPS = 6;
const IMPLICIT_STEPS = 3;

/**
 * Limits at which rows are cut into parts of ratings, and θ into regions that fit a cache; so small that long
 * rows are cut.
 */
const PART_RATINGS = 500;
const REGION_BYTES = 40_000;

const shapes: readonly HalfIterationShape[] = [
  ...[10, 64, 100, 200].flatMap((rank) => (['cg', 'cholesky'] as const).map((solver) => ({ rank, solver }))),
  ...[33, 64, 100, 128].map((rank) => ({ rank, solver: 'cg' as const, biases: true })),
  { rank: 64, solver: 'cholesky', biases: true },
  ...[10, 64, 128].map((rank) => ({ rank, solver: 'nonnegative' as const })),
  { rank: 64, solver: 'nonnegative', biases: true },
  ...[10, 64, 100, 128, 200].flatMap((rank) =>
    (['cg', 'cholesky'] as const).map((solver) => ({ rank, solver, alpha: 3 })),
  ),
  { rank: 64, solver: 'cg', alpha: 40 },
  ...[10, 64, 128].map((rank) => ({ rank, solver: 'nonnegative' as const, alpha: 3 })),
];

/**
 * Checks of all variants that the adapter supports, for each shape; the longest row has `longest` ratings.
 */
export function halfIterationChecks(
  info: GpuInfo,
  longest: number,
  among: readonly HalfIterationShape[] = shapes,
): KernelCheck[] {
  return among.flatMap((shape) => {
    const { rank, solver, biases = false, alpha } = shape;
    const implicit = alpha !== undefined;
    const what = biases ? ', biases' : implicit ? `, alpha ${alpha}` : '';
    return updateVariants(info, { rank, solver, biases, implicit }).map((variant) => ({
      name: implicit ? 'implicit-half-iteration' : 'half-iteration',
      variant: `${variant.name}, rank ${rank}, ${solver}${what}`,
      run: (gpu: Gpu) => checkHalfIteration(gpu, variant, shape, longest),
    }));
  });
}

/**
 * Solves all rows of a small problem with one variant of the half-iteration and compares them with float64, and
 * for implicit data the Gram matrix. Rows are cut into small parts, and θ into small regions.
 */
export async function checkHalfIteration(
  gpu: Gpu,
  given: UpdateVariant,
  { rank, solver, biases = false, alpha }: HalfIterationShape,
  longest: number,
): Promise<{ error: number; limit: number }> {
  const variant = inSmallParts(given);
  const { precision } = variant;
  const implicit = alpha !== undefined;
  const half = precision !== 'f32';
  const end = Math.min(longest, given.fused?.longest ?? 0);
  // Unsorted lengths that reach every way to solve a row: dual systems, the kernel that sums and solves, and
  // rows cut into parts.
  const fused = end > 70 ? [end, end - 1] : [];
  const lengths = [1, 0, 64, 65, longest, 33].concat(
    implicit ? [32, 31, 2, 700, 16, 130, 1] : [...fused, 32, 31, 2, 700, 16, 8, 7, 0, 5, 130, 1],
  );
  const problem = commonProblem({
    rank,
    biases,
    precision,
    lengths,
    ...(implicit && { implicit: { alpha, signed: true } }),
  });
  const steps = solver === 'cg' ? (implicit ? IMPLICIT_STEPS : CG_STEPS) : 0;
  const solved = await solveProblem(gpu, problem, {
    variant,
    solver: solverNamed({ solver, cgSteps: steps }),
    measured: !implicit && solver !== 'nonnegative',
    scale: { f32: 1, f16: 0.5, int8: 256 }[precision],
  });
  const { badRow, objective } = solved;
  const isWrong = badRow !== -1 || (implicit && gramError(problem, solved.gram) > 10 * PRODUCT_LIMIT);
  const error = outputsError(problem, solved, half, {
    steps,
    exactTo: variant.short,
    nonnegative: solver === 'nonnegative',
    ...(implicit && half && { minimum: { gradient: ROOTS_LIMIT, distance: 10 * ROOTS_LIMIT } }),
    ...(objective !== undefined && { objectives: [objective] }),
  });
  const limit =
    solver === 'nonnegative'
      ? 1
      : implicit
        ? implicitLimit(steps, variant)
        : explicitLimit(steps, variant, biases);
  return { error: isWrong ? Infinity : error, limit };
}

function inSmallParts(variant: UpdateVariant): UpdateVariant {
  const regions = variant.regions && { bytes: REGION_BYTES, ratings: 1 };
  return { ...variant, partRatings: PART_RATINGS, regions };
}

function explicitLimit(steps: number, { halfA, fused, sum }: UpdateVariant, biases: boolean): number {
  if (steps === 0) return RESIDUAL_LIMIT;
  if (biases) return CG_TENSOR_BIAS_LIMIT;
  if (halfA || fused?.halfA) return CG_HALF_LIMIT;
  return sum.kernel === 'tensor' ? CG_TENSOR_LIMIT : CG_LIMIT;
}

function implicitLimit(steps: number, { sum }: UpdateVariant): number {
  const tensor = sum.kernel === 'tensor';
  if (steps === 0) return tensor ? ROOTS_LIMIT : RESIDUAL_LIMIT;
  return tensor ? 2 * CG_TENSOR_LIMIT : CG_GRAM_LIMIT;
}

/** The largest error of G, relative to its largest element; Infinity if the padding is not 0. */
function gramError({ ratings, implicit }: RatedProblem, found: Float32Array): number {
  const { rank, stride } = ratings;
  const expected = implicit!.gram();
  const own = Float64Array.from(expected, (_, at) => found[Math.floor(at / rank) * stride + (at % rank)]);
  const padding = found.some((value, at) => value !== 0 && (at % stride >= rank || at >= rank * stride));
  return padding ? Infinity : deviation(own, expected);
}

/** Checks of whole half-iterations by matrix-free CG, with various numbers of threads that share a rating. */

type Case = Omit<VectorProductsParams, 'first' | 'implicit'> & { readonly implicit?: boolean };

const narrow = { threads: 64, lanes: 4, width: 4 } as const;

const cases: readonly Case[] = [
  { ...narrow, rank: 1, precision: 'f16', biases: false },
  { ...narrow, rank: 20, precision: 'f32', biases: true },
  { ...narrow, rank: 50, precision: 'f16', biases: true },
  { ...narrow, lanes: 2, rank: 64, precision: 'f32', biases: false },
  { ...narrow, lanes: 1, rank: 30, precision: 'f16', biases: true },
  ...[200, 264, 400, 512].map((rank) => ({
    ...chooseVectorProducts(rank, 'f16'),
    rank,
    precision: 'f16' as const,
    biases: rank === 264,
  })),
  { ...chooseVectorProducts(300, 'f32'), rank: 300, precision: 'f32', biases: true },
  { ...narrow, rank: 50, precision: 'f16', biases: false, implicit: true },
  { ...narrow, rank: 140, precision: 'f32', biases: false, implicit: true },
  ...[200, 512].map((rank) => ({
    ...chooseVectorProducts(rank, 'f16'),
    rank,
    precision: 'f16' as const,
    biases: false,
    implicit: true,
  })),
];

/**
 * Ratings of the longest row: enough that it is cut into several parts and regions, and that a team of
 * threads takes several groups of ratings.
 */
const LONGEST = 1500;

export const vectorChecks: readonly KernelCheck[] = cases.map((params) => ({
  name: vectorProductsKernel.name,
  variant: variantOf(params),
  admitted: (gpu: Gpu) =>
    gpu.admits(vectorProductsKernel, { ...params, implicit: params.implicit === true, first: true }),
  run: (gpu: Gpu) => {
    const { rank, biases, implicit = false, precision, threads, lanes, width } = params;
    const variant: UpdateVariant = {
      name: 'vectors',
      precision,
      sum: { kernel: 'vectors', threads, lanes, width },
      short: 0,
      halfA: false,
      registers: false,
      partRatings: 0,
      regions: REGIONS,
    };
    const shape = { rank, solver: 'cg', ...(implicit ? { alpha: 3 } : { biases }) } as const;
    return checkHalfIteration(gpu, variant, shape, LONGEST);
  },
}));
