/** Checks of whole half-iterations, for every variant that an adapter supports. */
import { destroyBuffers, type DeviceBlock } from '../../device/resources.ts';
import { updateRows } from '../../update/half-iteration.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { solverNamed, type UpdateVariant } from '../../update/choice/variant.ts';
import { updateVariants } from '../../update/choice/variants.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import type { KernelCheck } from '../support/check.ts';
import {
  CG_HALF_LIMIT,
  CG_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
  RESIDUAL_LIMIT,
} from '../support/limits.ts';
import { uploadAll } from '../support/rated-rows.ts';
import { commonProblem, problemBuffers, problemError, type RatedProblem } from '../support/rated-problem.ts';

/** A problem to solve. */
export interface HalfIterationShape {
  readonly rank: number;
  readonly solver: UpdateProblem['solver'];
  readonly biases: boolean;
}

const CG_STEPS = 6;

/**
 * Limits at which rows are cut into parts of ratings, and θ into regions that fit a cache; so small that long
 * rows are cut.
 */
const PART_RATINGS = 500;
const REGION_BYTES = 40_000;

const shapes: readonly HalfIterationShape[] = [
  ...[10, 64, 100, 200].flatMap((rank) =>
    (['cg', 'cholesky'] as const).map((solver) => ({ rank, solver, biases: false })),
  ),
  ...[33, 64, 100, 128].map((rank) => ({ rank, solver: 'cg' as const, biases: true })),
  { rank: 64, solver: 'cholesky', biases: true },
  ...[10, 64, 128].map((rank) => ({ rank, solver: 'nonnegative' as const, biases: false })),
  { rank: 64, solver: 'nonnegative', biases: true },
];

/**
 * Row lengths that reach every way to solve a row: dual systems, the kernel that sums and
 * solves, and rows cut into parts. They are not sorted.
 */
function lengthsFor({ fused }: UpdateVariant, longest: number): number[] {
  const end = Math.min(longest, fused?.longest ?? 0);
  return [
    1,
    0,
    64,
    65,
    longest,
    33,
    ...(end > 70 ? [end, end - 1] : []),
    32,
    31,
    2,
    700,
    16,
    8,
    7,
    0,
    5,
    130,
    1,
  ];
}

/**
 * Checks of all variants that the adapter supports, for each shape; the longest row has `longest` ratings.
 */
export function halfIterationChecks(
  info: GpuInfo,
  longest: number,
  among: readonly HalfIterationShape[] = shapes,
): KernelCheck[] {
  return among.flatMap((shape) =>
    updateVariants(info, shape).map((variant) => ({
      name: 'half-iteration',
      variant: `${variant.name}, rank ${shape.rank}, ${shape.solver}${shape.biases ? ', biases' : ''}`,
      run: (gpu: Gpu) => checkHalfIteration(gpu, variant, shape, longest),
    })),
  );
}

/**
 * Solves all rows of a small problem with one variant of the half-iteration and compares them with float64.
 * Rows are cut into small parts, and θ into small regions.
 */
export async function checkHalfIteration(
  gpu: Gpu,
  given: UpdateVariant,
  { rank, solver, biases }: HalfIterationShape,
  longest: number,
): Promise<{ error: number; limit: number }> {
  const regions = given.regions && { bytes: REGION_BYTES, ratings: 1 };
  const variant = { ...given, partRatings: PART_RATINGS, regions };
  const half = variant.precision !== 'f32';
  const problem = commonProblem({
    rank,
    biases,
    precision: variant.precision,
    lengths: lengthsFor(given, longest),
  });
  const buffers: Record<string, GPUBuffer> = {
    ...(await problemBuffers(gpu, problem, 'f32')),
    ...(await uploadAll(gpu, { raw: problem.ratings.values })),
  };
  const mirror = await gpu.bufferOf(problem.ratings.mirror, 'mirror');
  const block = await blockOf(gpu, problem, buffers);
  const rows = problem.lengths.length;
  const settings = {
    variant,
    from: 0,
    to: rows,
    rank,
    ...problem.regularization,
    mean: problem.ratings.mean,
    solver: solverNamed({ solver, cgSteps: CG_STEPS }),
    measured: solver !== 'nonnegative',
    scale: { f32: 1, f16: 0.5, int8: 256 }[variant.precision],
  };
  const { columns, stride } = problem.ratings;
  const shape = { rows, columns: rank, stride };
  const inputs = {
    block,
    fixed: { ...shape, rows: columns, values: buffers.fixed, ...(half ? { half: mirror } : {}) },
    previous: { ...shape, values: buffers.previous },
    factors: { ...shape, values: buffers.factors, ...(half ? { half: buffers.half } : {}) },
    ...(biases ? { fixedBias: buffers.fixed_bias, bias: buffers.bias } : {}),
  };
  const { badRow, objective } = await updateRows(gpu, inputs, settings);
  const exactTo = variant.short;
  const steps = solver === 'cg' ? CG_STEPS : 0;
  const error =
    badRow === -1
      ? await problemError(gpu, problem, buffers, half, {
          steps,
          exactTo,
          nonnegative: solver === 'nonnegative',
          ...(objective === undefined ? {} : { objectives: [objective] }),
        })
      : Infinity;
  destroyBuffers({ buffers, mirror, rowPointers: block.rowPointers, lists: [...block.prepared.values()] });
  return { error, limit: solver === 'nonnegative' ? 1 : limitOf(variant, steps, biases) };
}

function limitOf({ halfA, fused, sum }: UpdateVariant, steps: number, biases: boolean): number {
  if (steps === 0) return RESIDUAL_LIMIT;
  if (biases) return CG_TENSOR_BIAS_LIMIT;
  if (halfA || fused?.halfA) return CG_HALF_LIMIT;
  return sum.kernel === 'tensor' ? CG_TENSOR_LIMIT : CG_LIMIT;
}

async function blockOf(
  gpu: Gpu,
  { ratings, lengths }: RatedProblem,
  { indices, raw: values }: Readonly<Record<string, GPUBuffer>>,
): Promise<DeviceBlock> {
  const { offsets } = ratings;
  return {
    rows: lengths.length,
    ratings: offsets[lengths.length],
    offsets,
    columns: ratings.indices,
    rowPointers: await gpu.bufferOf(offsets, 'offsets'),
    indices,
    values,
    prepared: new Map(),
  };
}
