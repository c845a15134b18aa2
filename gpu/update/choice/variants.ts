import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { chooseNormalEquations, normalEquationsKernel } from '../../equations/normal-equations.ts';
import { normalEquationsTensorKernel } from '../../equations/normal-equations-tensor.ts';
import { INT8_RANKS } from '../../int8/int8-plan.ts';
import { normalEquationsInt8Kernel } from '../../int8/normal-equations-int8.ts';
import { updateInt8Kernel } from '../../int8/update-int8.ts';
import { exactSolvers } from '../../solve/exact-solvers.ts';
import { REGISTER_RANKS, solveCgRegistersKernel } from '../../solve/solve-cg-registers.ts';
import { chooseVectorProducts, vectorProductsKernel } from '../../vectors/vector-products.ts';
import { vectorStepKernel } from '../../vectors/vector-step.ts';
import { updateShortKernel } from '../update-short.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { admits } from '../../webgpu/kernel.ts';
import { paddedRank } from '../../device/slots.ts';
import { admitsFused, FULL_REGISTERS, type SolvingForm, solvingForm } from './admits-fused.ts';
import { LEAST_BIN, tensorBins } from './tensor-bins.ts';
import { moreVariants } from './more-variants.ts';
import type { UpdateVariant } from './variant.ts';

/** Ratings of a part: long rows are cut, so that no workgroup runs much longer than the others. */
const PART_RATINGS = 8192;

/** Half of the second-level cache of a large GPU. */
const REGION_BYTES = 24 << 20;

/**
 * Fewest ratings of a piece for which a slot pays. Measured on an H200 at rank 100 with 40,000 rows and 279
 * M ratings of 4.5 M columns (42 regions): a half-iteration took 35.0 ms with pieces of some hundred
 * ratings, and 27.4 ms without cuts by regions.
 */
const REGION_RATINGS = 2048;

/** Workgroups that take rows from a list one after the other: enough to fill any GPU several times over. */
const WALKERS = 4224;

/** Smallest rank that has variants of CG by vectors. VECTOR_PART: ratings of their parts. */
const VECTOR_RANKS = 129;
const VECTOR_PART = 2048;

/** Longest rows of the fused kernel: longer rows gain more from cuts by regions. */
const FUSED_LONGEST = 2048;

type Shape = Pick<UpdateProblem, 'rank' | 'solver' | 'biases' | 'implicit'>;

/**
 * The variants that an adapter supports for a problem's rank and solver, in the rule's order:
 *
 * 1. tensor cores with float16
 * 2. tensor cores with 8 bits (`chooseUpdate` prefers them to float16 where possible)
 * 3. CG by vectors
 * 4. register tiles in float32, then in float16
 */
export function updateVariants(info: GpuInfo, shape: Shape): UpdateVariant[] {
  return [
    ...tensorVariants(info, shape),
    ...int8Variants(info, shape),
    ...vectorVariants(info, shape),
    ...tiledVariants(info, shape),
  ];
}

/** These variants and all variants derived from them, for the tuner. */
export function everyVariant(info: GpuInfo, shape: Shape): UpdateVariant[] {
  const main = updateVariants(info, shape);
  return [...main, ...moreVariants(info, shape, main)];
}

function tensorVariants(info: GpuInfo, { rank, solver, biases, implicit = false }: Shape): UpdateVariant[] {
  if (
    rank > REGISTER_RANKS ||
    !admits(info, normalEquationsTensorKernel, { rank, bin: LEAST_BIN, biases, implicit })
  )
    return [];
  // A of implicit data does not grow with n, so A / n in float16 would lose it.
  const halfA = rank > FULL_REGISTERS && !implicit;
  const form = solvingForm(info, { rank, biases, implicit }, 'f16');
  const bins = tensorBins(rank);
  const sumBin =
    bins.sum.find((bin) => admits(info, normalEquationsTensorKernel, { rank, bin, biases, implicit })) ??
    LEAST_BIN;
  const common = {
    precision: 'f16',
    free: false,
    halfA,
    registers: registers(info, rank, halfA, biases),
    partRatings: PART_RATINGS,
    regionBytes: REGION_BYTES,
    regionRatings: REGION_RATINGS,
    sorted: true,
  } as const;
  const sum = { kernel: 'tensor', bin: sumBin } as const;
  // In implicit data every row of θ contributes to a row, so its dual system would have an unknown for each
  // row of θ.
  const shorts = [64, 32, 0].filter(
    (longest) =>
      longest === 0 ||
      (!implicit &&
        (solver === 'cg' || exactSolvers[solver].dual) &&
        admits(info, updateShortKernel, { rank, longest, biases, centre: biases })),
  );
  // A dual system of 64 x 64 gains nothing if A itself is hardly larger.
  if (rank <= 64 && shorts.length === 3) shorts.unshift(...shorts.splice(1, 1));
  const variants = shorts.map((short): UpdateVariant => ({
    name: named('tensor', short),
    ...common,
    sum,
    short,
  }));
  const fusedBin = fusedBins(rank, form).find((bin) =>
    admitsFused(info, { rank, biases, implicit }, bin, form),
  );
  if (solver !== 'cg' || fusedBin === undefined) return variants;
  const fused = { bin: fusedBin, longest: FUSED_LONGEST, workgroups: WALKERS, ...form } as const;
  return [
    ...shorts.map((short): UpdateVariant => ({
      name: named('tensor-fused', short),
      ...common,
      sum,
      fused,
      short,
    })),
    ...variants,
  ];
}

/** Bins of the fused kernel. With A on tensor cores, smaller workgroups gain more than larger bins. */
function fusedBins(rank: number, { halfA }: SolvingForm): readonly number[] {
  const { fused } = tensorBins(rank);
  return halfA ? fused.filter((bin) => bin <= (rank <= FULL_REGISTERS ? LEAST_BIN : 64)) : fused;
}

/**
 * The variants on tensor cores with factors in 8 bits: with a fused kernel and with slots. Each has the dual
 * systems that the rule chooses for float16.
 */
function int8Variants(info: GpuInfo, shape: Shape): UpdateVariant[] {
  const { rank, biases, implicit = false } = shape;
  if (
    implicit ||
    rank < INT8_RANKS.least ||
    rank > INT8_RANKS.most ||
    !admits(info, normalEquationsInt8Kernel, { rank, biases })
  )
    return [];
  const form = solvingForm(info, shape, 'int8');
  return tensorVariants(info, shape).flatMap((variant): UpdateVariant[] => {
    const eighths: UpdateVariant = {
      ...variant,
      name: variant.name.replace('tensor', 'int8'),
      precision: 'int8',
      sum: { kernel: 'int8' },
    };
    const { fused } = variant;
    if (fused === undefined) return [eighths];
    const { bin, longest, workgroups } = fused;
    return admits(info, updateInt8Kernel, { rank, biases, ...form })
      ? [{ ...eighths, fused: { bin, longest, workgroups, ...form } }]
      : [];
  });
}

/**
 * The variant that sums equations over parts of θ, derived from the given one. It cannot use vectors, and
 * not 8 bits, because the scales of 8 bits are computed from all of θ.
 */
export function summingVariant(info: GpuInfo, variant: UpdateVariant, shape: Shape): UpdateVariant {
  const precision = variant.precision === 'f32' ? 'f32' : 'f16';
  if (variant.sum.kernel !== 'vectors' && variant.sum.kernel !== 'int8') return variant;
  return (
    [...tensorVariants(info, shape), ...tiledVariants(info, shape)].find(
      (one) => one.precision === precision,
    ) ?? variant
  );
}

/** The variants of CG by vectors, for ranks whose A does not fit registers and workgroup memory. */
function vectorVariants(info: GpuInfo, { rank, solver, biases, implicit = false }: Shape): UpdateVariant[] {
  if (rank < VECTOR_RANKS || solver !== 'cg' || implicit) return [];
  return (['f16', 'f32'] as const)
    .filter(
      (precision) =>
        admits(info, vectorProductsKernel, {
          rank,
          precision,
          biases,
          first: true,
          ...chooseVectorProducts(rank, precision),
        }) && admits(info, vectorStepKernel, { rank, biases, implicit: false, listed: true, phase: 'step' }),
    )
    .map((precision) => ({
      name: `vectors-${precision}`,
      precision,
      sum: { kernel: 'vectors', ...chooseVectorProducts(rank, precision) },
      short: 0,
      free: false,
      halfA: false,
      registers: false,
      partRatings: VECTOR_PART,
      regionBytes: REGION_BYTES,
      regionRatings: REGION_RATINGS,
      sorted: true,
    }));
}

function named(name: string, short: number): string {
  return short === 0 ? name : `${name}-short${short}`;
}

function tiledVariants(info: GpuInfo, { rank, solver, biases, implicit = false }: Shape): UpdateVariant[] {
  const variants: UpdateVariant[] = [];
  const limits = {
    threads: info.limits.workgroupThreads,
    bytes: Math.min(16384, info.limits.workgroupBytes),
  };
  const tiles = rank <= 32 ? [4, 8] : [8, 4];
  for (const precision of ['f32', 'f16'] as const) {
    for (const tile of tiles) {
      const {
        rank: _rank,
        precision: _precision,
        biases: _biases,
        implicit: _implicit,
        ...params
      } = chooseNormalEquations(rank, precision, biases, { ...limits, tile: tile as 4 | 8 });
      if (!admits(info, normalEquationsKernel, { rank, precision, biases, implicit, ...params })) continue;
      const variant: UpdateVariant = {
        name: `tiled${tile}-${precision}`,
        precision,
        sum: { kernel: 'tiled', ...params },
        short: 0,
        free: false,
        halfA: false,
        registers: registers(info, rank, false, biases),
        partRatings: PART_RATINGS,
        regionBytes: REGION_BYTES,
        regionRatings: REGION_RATINGS,
        sorted: true,
      };
      variants.push(variant);
      if (solver === 'cg' && !implicit)
        variants.push({ ...variant, name: `${variant.name}-free`, free: true });
    }
  }
  return variants;
}

/**
 * True if the solver with A in registers can be used, in which each thread has a row of A: in float32 up to
 * FULL_REGISTERS features.
 */
function registers(info: GpuInfo, rank: number, halfA: boolean, biases: boolean): boolean {
  const largest = halfA ? REGISTER_RANKS : FULL_REGISTERS;
  return (
    paddedRank(rank) <= largest && admits(info, solveCgRegistersKernel, { rank, halfA, biases, half: true })
  );
}
