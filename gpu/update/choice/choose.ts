import { UsageError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import type { KernelChoice, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { strideOf } from '../../device/resources.ts';
import { slotElements } from '../../device/slots.ts';
import { gramSlotBytes } from '../../implicit/gram.task.ts';
import { int8Bytes, int8Scale } from '../../int8/int8-plan.ts';
import { exactSolvers } from '../../solve/exact-solvers.ts';
import { shiftBytes } from '../../solve/row-shifts.ts';
import { REGISTER_RANKS } from '../../solve/solve-cg.ts';
import { vectorBytes } from '../../vectors/vectors.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { centredBytes, needsCentred } from '../centred.ts';
import { SLOT_BYTES } from '../prepared-rows.ts';
import { statusBytes } from '../solved-pass.ts';
import type { UpdateVariant } from './variant.ts';
import { everyVariant, updateVariants } from './variants.ts';

/**
 * If the precision is `auto` and a rating is larger than this, factors are float32. With smaller ratings,
 * factors, and sums of their products divided by n, stay far below 65,504, the largest number of float16.
 */
const LARGEST_HALF_RATING = 10_000;

/** Kernels scale ratings before they round them to float16, so that the largest becomes at most this. */
const LARGEST_SCALED = 2048;

/** The variant that was measured fastest, and the measurement as text. See tuner.ts. */
export interface TunedVariant {
  readonly variant: string;
  readonly reason: string;
}

/**
 * Chooses the variant (kernels and their settings) for the half-iterations of one side: the variant that the
 * user named, else the variant that was measured fastest (`tuned`), else the one that `bestByRule` prefers.
 * Throws UsageError if the named variant does not exist for the GPU, the rank and the solver, if it
 * contradicts the requested precision, or if the GPU has no variant at all.
 */
export function chooseUpdate(info: GpuInfo, problem: UpdateProblem, tuned?: TunedVariant): KernelChoice {
  const { kernel } = problem;
  if (kernel !== undefined) {
    const named = variantNamed(kernel, info, problem);
    if (problem.precision !== 'auto' && named.precision !== problem.precision) {
      throw new UsageError(
        `kernel ${kernel} computes in ${named.precision}, but precision ${problem.precision} is requested`,
        { advice: 'Leave one of the two out' },
      );
    }
    return choiceOf(info, named, problem, 'as requested');
  }
  const measured =
    tuned &&
    everyVariant(info, problem).find(
      (variant) => variant.name === tuned.variant && servesPrecision(variant, problem),
    );
  if (tuned !== undefined && measured !== undefined) return choiceOf(info, measured, problem, tuned.reason);
  const best = bestByRule(info, problem);
  if (best === undefined)
    throw new UsageError(
      `${info.name} has no kernel for rank ${problem.rank}${problem.biases ? ' with biases' : ''} in ` +
        `${problem.precision}`,
      { advice: 'Use another precision, or device cpu' },
    );
  return choiceOf(info, best, problem, whyByRule(info, problem, best));
}

function whyByRule(info: GpuInfo, problem: UpdateProblem, best: UpdateVariant): string {
  const exact = needsExact(problem);
  const hasTensor = info.features.includes('tensor');
  const why = [
    best.precision === 'int8' && problem.precision === 'auto'
      ? 'by rule: this GPU multiplies in 8 bits, which take less time than float16 to the same test error'
      : 'by rule: the first of the kernels that this GPU admits',
    ...(best.sum.kernel === 'tiled' && !hasTensor ? ['it has no tensor cores that WebGPU can use'] : []),
    ...(exact ? [`float32, since ratings reach ${problem.largestRating}`] : []),
    ...(best.sum.kernel !== 'tensor' &&
    best.sum.kernel !== 'int8' &&
    problem.rank > REGISTER_RANKS &&
    hasTensor
      ? [`tensor-core kernels serve ranks to ${REGISTER_RANKS}`]
      : []),
  ];
  return why.join('; ');
}

/**
 * Chooses without measurements: the first supported variant in the order of `updateVariants`. If that is a
 * fused variant on tensor cores in float16, the corresponding variant in 8 bits is preferred, if there is one
 * with the same limit for dual systems. On an H200, 8 bits took less time than float16 at all measured ranks
 * from 40 to 256, except 1.07 times the time at rank 80 with biases. Both reached the same test error
 * (bench/results, `als-gpu-biases-f16`).
 */
function bestByRule(info: GpuInfo, problem: UpdateProblem): UpdateVariant | undefined {
  const admitted = updateVariants(info, problem).filter((variant) => servesPrecision(variant, problem));
  const [first] = admitted;
  if (first?.sum.kernel !== 'tensor' || first.fused === undefined) return first;
  return (
    admitted.find(
      ({ precision, fused, short }) => precision === 'int8' && fused !== undefined && short === first.short,
    ) ?? first
  );
}

/**
 * True if a variant may be chosen without being named by the user: it has the requested precision, and if
 * that is `auto` with ratings too large for float16, it is float32.
 */
export function servesPrecision(
  { precision }: Pick<UpdateVariant, 'precision'>,
  problem: Pick<UpdateProblem, 'precision' | 'largestRating'>,
): boolean {
  if (needsExact(problem)) return precision === 'f32';
  return problem.precision === 'auto' || precision === problem.precision;
}

function needsExact({
  precision,
  largestRating,
}: Pick<UpdateProblem, 'precision' | 'largestRating'>): boolean {
  return precision === 'auto' && largestRating > LARGEST_HALF_RATING;
}

/** Finds a variant by its name. Throws UsageError if the GPU has no such variant for this rank and solver. */
export function variantNamed(
  name: string,
  info: GpuInfo,
  shape: Pick<UpdateProblem, 'rank' | 'solver' | 'cgSteps' | 'biases' | 'implicit' | 'prior'>,
): UpdateVariant {
  const main = updateVariants(info, shape);
  const isNamed = (variant: UpdateVariant) => variant.name === name;
  const found = main.find(isNamed) ?? everyVariant(info, shape).find(isNamed);
  if (found !== undefined) return found;
  throw new UsageError(
    `there is no kernel ${name} for rank ${shape.rank} and solver ${shape.solver} on ${info.name}`,
    {
      advice:
        `There are: ${main.map((variant) => variant.name).join(', ')}; and variants of them, which ` +
        'factorflow doctor --tune tries',
    },
  );
}

function choiceOf(
  info: GpuInfo,
  variant: UpdateVariant,
  { rank, rows, columns, ratings, biases, implicit, solver, largestRating }: UpdateProblem,
  why: string,
): KernelChoice {
  const stride = strideOf(rank);
  const mirrors =
    (variant.precision === 'f32' ? 0 : 2 * stride * (rows + columns + 2)) +
    (variant.precision === 'int8' ? int8Bytes(columns, rank) : 0);
  const rowBytes =
    variant.sum.kernel === 'vectors'
      ? vectorBytes(rank, biases, implicit === true)
      : 4 * slotElements(rank, biases);
  const slots = Math.max(
    Math.min(SLOT_BYTES, rows * rowBytes),
    implicit ? gramSlotBytes(info, columns, rank) : 0,
  );
  return {
    variant: variant.name,
    precision: variant.precision,
    ratingScale: { f32: () => 1, f16: scaleOf, int8: int8Scale }[variant.precision](largestRating),
    reason: `kernel ${variant.name} (${describe(variant)}), ${why}; features padded from ${rank} to ${stride}`,
    // Copies of factors in float16 or 8 bits; 32 bytes for each row, for lists of rows; and the numbers that
    // are added to the diagonals of A, once for the update and once for the regularization term of the loss.
    deviceBytes: mirrors + 32 * rows + (implicit ? 0 : shiftBytes(rows, biases) + 4 * rows),
    ...(solver === 'cg' || exactSolvers[solver].writesObjective ? { tellsLoss: true } : {}),
    scratchBytes: {
      slots,
      status: statusBytes(rows),
      ...(implicit ? {} : { 'row shifts': shiftBytes(rows, biases) }),
      ...(needsCentred(variant, rank, biases) ? { 'centred ratings': centredBytes(ratings) } : {}),
    },
  };
}

/**
 * The factor for ratings before they are rounded to float16: a power of two, at most 1, that brings the
 * largest rating to at most LARGEST_SCALED.
 */
function scaleOf(largest: number): number {
  return largest > LARGEST_SCALED ? 2 ** -Math.ceil(Math.log2(largest / LARGEST_SCALED)) : 1;
}

/**
 * Describes a variant in words, for plans: "A on tensor cores, solved in place to 2,048 ratings, dual systems
 * to 64 ratings, θ in float16".
 */
function describe({ sum, fused, short, halfA, precision }: UpdateVariant): string {
  return [
    sum.kernel === 'tensor' || sum.kernel === 'int8'
      ? 'A on tensor cores'
      : sum.kernel === 'vectors'
        ? 'CG by vectors, without A'
        : `A in ${sum.tile} x ${sum.tile} register tiles`,
    ...(fused ? [`solved in place to ${formatCount(fused.longest)} ratings`] : []),
    ...(short > 0 ? [`dual systems to ${short} ratings`] : []),
    `θ in ${{ f32: 'float32', f16: 'float16', int8: '8 bits' }[precision]}`,
    ...((fused?.halfA ?? halfA) ? ['A/n in float16'] : []),
  ].join(', ');
}
