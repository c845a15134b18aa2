/**
 * Checks of half-iterations by way of equations, from vertical parts of θ: the sums against float64, and the
 * rows that are solved from them.
 */
import { equationsOfRow } from '../../../cpu/reference/equations.ts';
import { gramMatrix, implicitEquations } from '../../../cpu/reference/implicit.ts';
import { type CompressedRows, verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import type { ImplicitWeights, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { destroyBuffers, type DeviceMatrix, strideOf } from '../../device/resources.ts';
import { addEquations } from '../../equations/add-equations.ts';
import { solveRows } from '../../equations/solve-equations.ts';
import { solverNamed, type UpdateVariant } from '../../update/choice/variant.ts';
import { updateVariants } from '../../update/choice/variants.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import type { KernelCheck } from '../support/check.ts';
import { halfMirror } from '../support/float16.ts';
import {
  CG_HALF_LIMIT,
  CG_LIMIT,
  CG_TENSOR_BIAS_LIMIT,
  CG_TENSOR_LIMIT,
  RESIDUAL_LIMIT,
} from '../support/limits.ts';
import { deviation, worse } from '../support/numbers.ts';
import { commonProblem, problemBuffers, problemError, type RatedProblem } from '../support/rated-problem.ts';
import { uploadAll } from '../support/rated-rows.ts';
import { downloadOutputs, relativeResidual, solvedRow } from '../support/solved-rows.ts';
import { equationValues } from '../../equations/exchange/slot-columns.ts';

/** The problem that is solved; implicit data by Cholesky. */
export interface DataParallelShape {
  readonly rank: number;
  readonly solver: UpdateProblem['solver'];
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly p: number;
}

const STEPS = 6;
const WEIGHTS: ImplicitWeights = { alpha: 3, base: 1 };
const GRAM_WEIGHT = 0.7;

/**
 * Limits of sums over the largest number of a row's equations: of float32, and with θ multiplied by roots of
 * weights in float16.
 */
const SUM_LIMIT = 1e-5;
const TENSOR_SUM_LIMIT = 1e-4;
const WEIGHTED_HALF_LIMIT = 1e-3;
/** Limit of the residual with such sums. */
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

/** Checks of all ways to sum that the adapter admits; the longest row has `longest` ratings. */
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
        ({ fused, short, free, sum }) =>
          fused === undefined && short === 0 && !free && sum.kernel !== 'int8' && sum.kernel !== 'vectors',
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
  const { rank, solver, kind } = shape;
  const variant = { ...given, partRatings: 500, regionBytes: 40_000, regionRatings: 1 };
  const half = variant.precision === 'f16';
  const [biases, implicit] = [kind === 'biases', kind === 'implicit'];
  const lengths = [1, 0, 64, 65, longest, 33, 32, 2, 700, 16, 7, 0, 130, 1];
  const problem = commonProblem({ rank, biases, precision: variant.precision, lengths });
  const { ratings } = problem;
  const rows = lengths.length;
  const columns = equationValues({ rank, biases }).COLUMNS;
  const stride = strideOf(columns);
  const buffers: Readonly<Record<string, GPUBuffer>> = {
    ...(await problemBuffers(gpu, problem, 'f32')),
    equations: await gpu.bufferOf(new Float32Array(rows * stride), 'equations'),
  };
  const equations: DeviceMatrix = { rows, columns, stride, values: buffers.equations };
  for (const part of verticalParts(ratings, ratings.columns, shape.p))
    await addPart(gpu, problem, part, equations, {
      variant,
      from: 0,
      to: rows,
      rank,
      rowStart: 0,
      mean: ratings.mean,
      scale: half ? 0.5 : 1,
      ...(implicit ? { implicit: WEIGHTS } : {}),
    });
  const found = new Float32Array(rows * stride);
  await gpu.download(buffers.equations, found);

  const matrix = (values: GPUBuffer, halves?: GPUBuffer): DeviceMatrix => ({
    rows,
    columns: rank,
    stride: ratings.stride,
    values,
    half: halves,
  });
  const shifts = Float32Array.from(lengths, (_, row) => 0.5 + row);
  const gram = gramMatrix(ratings.theta, ratings.stride, rank, ratings.columns, GRAM_WEIGHT);
  const more = implicit ? await uploadAll(gpu, { shifts, gram: padded(gram, rank, ratings.stride) }) : {};
  const inputs = {
    equations,
    previous: matrix(buffers.previous),
    factors: matrix(buffers.factors, half ? buffers.half : undefined),
    ...(biases ? { bias: buffers.bias } : {}),
    ...more,
  };
  const regularization = implicit ? { lambda: 0 } : problem.regularization;
  const { badRow } = await solveRows(gpu, inputs, {
    variant,
    from: 0,
    to: rows,
    rank,
    rowStart: 0,
    ...regularization,
    solver: solverNamed({ solver, cgSteps: STEPS }),
  });
  const solved =
    badRow !== -1
      ? Infinity
      : implicit
        ? await implicitError(gpu, problem, buffers, half, gram, shifts)
        : await problemError(gpu, problem, buffers, half, {
            steps: solver === 'cg' ? STEPS : 0,
            exactTo: -1,
            nonnegative: solver === 'nonnegative',
          });
  destroyBuffers({ buffers, more });
  const tensor = variant.sum.kernel === 'tensor';
  const sumLimit = tensor ? (implicit ? WEIGHTED_HALF_LIMIT : TENSOR_SUM_LIMIT) : SUM_LIMIT;
  return {
    error: worse(equationsError(problem, found, stride, kind) / sumLimit, solved / limitOf(variant, shape)),
    limit: 1,
  };
}

async function addPart(
  gpu: Gpu,
  { ratings, biases }: RatedProblem,
  { first, last, offsets, ...lists }: CompressedRows & { readonly first: number; readonly last: number },
  equations: DeviceMatrix,
  settings: Parameters<typeof addEquations>[2],
): Promise<void> {
  const theta = ratings.theta.slice(first * ratings.stride, last * ratings.stride);
  const contents = {
    offsets,
    indices: nonEmpty(lists.indices),
    values: nonEmpty(lists.values),
    theta,
    mirror: halfMirror(theta, ratings.stride),
    bias: ratings.fixedBias.slice(first, last),
  };
  const {
    offsets: rowPointers,
    indices,
    values,
    theta: fixed,
    mirror,
    bias,
  } = await uploadAll(gpu, contents);
  const block = {
    rows: offsets.length - 1,
    ratings: lists.indices.length,
    offsets,
    columns: lists.indices,
    rowPointers,
    indices,
    values,
    prepared: new Map<string, unknown>(),
  };
  const matrix = {
    rows: last - first,
    columns: ratings.rank,
    stride: ratings.stride,
    values: fixed,
    half: mirror,
  };
  await addEquations(
    gpu,
    { block, fixed: matrix, fixedBias: biases ? bias : undefined, equations },
    settings,
  );
  destroyBuffers({ rowPointers, indices, values, fixed, mirror, bias, lists: [...block.prepared.values()] });
}

/** A buffer has at least one number. */
function nonEmpty<Numbers extends Uint32Array | Float32Array>(numbers: Numbers): Numbers {
  return numbers.length > 0 ? numbers : new (numbers.constructor as new (length: number) => Numbers)(1);
}

function padded(gram: Float64Array, rank: number, stride: number): Float32Array {
  const values = new Float32Array(stride * stride);
  gram.forEach((value, at) => (values[Math.floor(at / rank) * stride + (at % rank)] = value));
  return values;
}

/** The largest deviation of a row of equations from float64, or infinity where the padding is not 0. */
function equationsError(
  { ratings, lengths, biases }: RatedProblem,
  found: Float32Array,
  stride: number,
  kind: DataParallelShape['kind'],
): number {
  let error = 0;
  lengths.forEach((length, row) => {
    const twin = equationsOfRow(
      ratings.theta,
      ratings.stride,
      ratings.rank,
      ratings.part(ratings.offsets[row], length),
      { biases, ...(kind === 'implicit' ? { implicit: WEIGHTS } : {}) },
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

async function implicitError(
  gpu: Gpu,
  problem: RatedProblem,
  buffers: Readonly<Record<string, GPUBuffer>>,
  half: boolean,
  gram: Float64Array,
  shifts: Float32Array,
): Promise<number> {
  const { ratings, lengths } = problem;
  const outputs = await downloadOutputs(gpu, buffers, problem);
  let error = 0;
  lengths.forEach((length, row) => {
    const { x, wrong } = solvedRow(ratings, row, {
      factors: outputs.factors,
      half: half ? outputs.half : undefined,
    });
    const residual = () =>
      relativeResidual(
        implicitEquations(
          gram,
          ratings.theta,
          ratings.stride,
          ratings.rank,
          ratings.part(ratings.offsets[row], length),
          WEIGHTS,
          shifts[row],
        ),
        x,
      );
    error = worse(error, worse(wrong, length === 0 ? Math.hypot(...x) : residual()));
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
