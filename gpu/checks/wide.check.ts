/**
 * Checks of whole half-iterations at ranks above 512, at which A is never formed. Rows are compared with the
 * same number of CG steps in float64 that do not form A either.
 */
import {
  explicitProducts,
  freeBiasedGradients,
  type FreeEquations,
  freeGradients,
  gramTimes,
  implicitProducts,
} from '../../cpu/reference/matrix-free.ts';
import type { UpdateVariant } from '../update/choice/variant.ts';
import { wideProductsKernel, wideThreads } from '../vectors/products.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import {
  type KernelCheck,
  variantOf,
  deviation,
  worse,
  CG_BIAS_LIMIT,
  CG_GRAM_LIMIT,
  CG_LIMIT,
} from './support/check.ts';
import {
  GRAM_WEIGHT,
  ratedProblem,
  type RatedProblem,
  shiftOf,
  solveProblem,
} from './support/rated-problem.ts';
import { otherRowsKept, rowShifts, solvedRow } from './support/rated-rows.ts';

type Shape = {
  readonly rank: number;
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly precision: 'f32' | 'f16';
  /** Threads of a subgroup that the kernel uses; see WideProductsParams. */
  readonly width: number;
  /** Rows of θ, and steps of CG. */
  readonly columns?: number;
  readonly steps?: number;
  /** A rating of this row is NaN, and the row must be reported. */
  readonly bad?: number;
};

const shapes: readonly Shape[] = [
  { rank: 513, kind: 'biases', precision: 'f32', width: 4 },
  { rank: 513, kind: 'explicit', precision: 'f16', width: 1 },
  { rank: 600, kind: 'explicit', precision: 'f32', width: 1 },
  { rank: 600, kind: 'implicit', precision: 'f32', width: 4, steps: 3 },
  { rank: 1024, kind: 'biases', precision: 'f16', width: 4 },
  { rank: 1030, kind: 'implicit', precision: 'f16', width: 1, steps: 3 },
  { rank: 2048, kind: 'explicit', precision: 'f16', width: 4 },
  { rank: 4096, kind: 'explicit', precision: 'f32', width: 1 },
  { rank: 4096, kind: 'biases', precision: 'f16', width: 4 },
  { rank: 4096, kind: 'implicit', precision: 'f16', width: 4, columns: 60, steps: 2 },
  ...[600, 1024, 2048, 3000, 4096].flatMap((rank) => [
    { rank, kind: 'biases', precision: 'f16', width: 32 } as const,
    { rank, kind: 'implicit', precision: 'f32', width: 32, steps: 3 } as const,
  ]),
  { rank: 528, kind: 'biases', precision: 'f32', width: 4, bad: 3 },
  { rank: 528, kind: 'implicit', precision: 'f32', width: 1, bad: 6 },
];

/** Row lengths: empty and short ones, and rows that are cut into parts; the longest reaches many parts. */
const LENGTHS = [1, 0, 9, 64, 1500, 33, 2, 700, 8, 0, 1];
const COLUMNS = 350;
const PART_RATINGS = 400;
const STEPS = 5;

export const wideChecks: readonly KernelCheck[] = shapes.map((shape) => ({
  name: wideProductsKernel.name,
  variant: variantOf(shape),
  admitted: (gpu: Gpu) =>
    gpu.admits(wideProductsKernel, {
      ...shape,
      biases: shape.kind === 'biases',
      implicit: shape.kind === 'implicit',
      first: true,
    }),
  run: (gpu: Gpu) => check(gpu, shape),
}));

async function check(gpu: Gpu, shape: Shape): Promise<{ error: number; limit: number }> {
  const { rank, kind, precision, width, columns = COLUMNS, steps = STEPS, bad } = shape;
  const biases = kind === 'biases';
  const problem = ratedProblem({
    rank,
    biases,
    precision,
    lengths: LENGTHS,
    columns,
    ...(kind === 'implicit' && { implicit: { alpha: 3 } }),
  });
  if (bad !== undefined) problem.ratings.values[problem.ratings.offsets[bad]] = NaN;
  const solved = await solveProblem(gpu, problem, {
    variant: variantFor(rank, precision, width),
    solver: { steps },
    measured: true,
    scale: 1,
  });
  const { badRow, objective } = solved;
  const limit = { explicit: CG_LIMIT, biases: CG_BIAS_LIMIT, implicit: CG_GRAM_LIMIT }[kind];
  if (bad !== undefined) return { error: badRow === bad ? 0 : Infinity, limit };
  const { stride } = problem.ratings;
  if (badRow !== -1 || !otherRowsKept({ count: LENGTHS.length, stride }, solved.factors))
    return { error: Infinity, limit };
  let [error, sum, size] = [0, 0, 0];
  LENGTHS.forEach((length, row) => {
    const { x, wrong } = solvedRow(problem.ratings, row, {
      factors: solved.factors,
      half: precision === 'f16' ? solved.half : undefined,
      bias: biases ? solved.bias : undefined,
    });
    error = worse(error, worse(wrong, rowError(shape, problem, row, x)));
    if (length === 0 || biases) return;
    const { times, bias } = equationsOf(problem, row);
    const along = x.reduce((all, value, i) => all + value * bias[i], 0);
    const squares = times(x).reduce((all, value, i) => all + value * x[i], 0);
    sum += squares - 2 * along;
    size += squares + 2 * Math.abs(along);
  });
  const agrees = biases || Math.abs(objective! - sum) <= 1e-4 * size;
  return { error: agrees ? error : Infinity, limit };
}

function variantFor(rank: number, precision: 'f32' | 'f16', width: number): UpdateVariant {
  const threads = wideThreads(rank);
  return {
    name: 'vectors',
    precision,
    sum: { kernel: 'vectors', threads, lanes: threads, width },
    short: 0,
    halfA: false,
    registers: false,
    partRatings: PART_RATINGS,
    regions: { bytes: (COLUMNS * rank * (precision === 'f16' ? 2 : 4)) / 3, ratings: 100 },
  };
}

function rowError(shape: Shape, problem: RatedProblem, row: number, x: Float64Array): number {
  const { ratings, previous, regularization } = problem;
  const { rank, stride } = ratings;
  if (LENGTHS[row] === 0) return Math.hypot(...x);
  const start = Float64Array.from(previous.subarray(row * stride, row * stride + rank));
  const { steps = STEPS } = shape;
  if (shape.kind !== 'biases') return deviation(x, freeGradients(equationsOf(problem, row), start, steps));
  const { shift, ownShift } = rowShifts(LENGTHS[row], regularization);
  const part = ratings.part(ratings.offsets[row], LENGTHS[row]);
  const weight = LENGTHS[row] + ownShift;
  return deviation(x, freeBiasedGradients(ratings, part, shift, weight, start, steps));
}

function equationsOf({ ratings, regularization, implicit }: RatedProblem, row: number): FreeEquations {
  const part = ratings.part(ratings.offsets[row], LENGTHS[row]);
  if (implicit === undefined)
    return explicitProducts(ratings, part, rowShifts(LENGTHS[row], regularization).shift);
  return implicitProducts(
    ratings,
    part,
    implicit.weights,
    shiftOf(row),
    gramTimes(ratings, ratings.columns, GRAM_WEIGHT),
  );
}
