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
import { wideProductsKernel, wideThreads, WIDTHS } from '../../vectors/wide-products.ts';
import { updateShortKernel } from '../update-short.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { admits } from '../../webgpu/kernel.ts';
import { MOST_FORMED, paddedRank } from '../../device/slots.ts';
import { admitsFused, FULL_REGISTERS, type SolvingForm, solvingForm } from './admits-fused.ts';
import { LEAST_BIN, tensorBins } from './tensor-bins.ts';
import { moreVariants } from './more-variants.ts';
import { REGIONS, type SumKernel, type UpdateVariant } from './variant.ts';

/**
 * Most ratings of one part of a row: long rows are cut, so that no workgroup runs much longer than the
 * others.
 */
const PART_RATINGS = 8192;

/**
 * Most workgroups of the fused kernel. Each takes rows from the list one after the other; this number fills
 * any GPU several times over.
 */
const FUSED_WORKGROUPS = 4224;

/**
 * VECTOR_RANKS: smallest rank with variants of CG by vectors, which do not compute A. VECTOR_PART: most
 * ratings of one part of a row in these variants.
 */
const VECTOR_RANKS = 129;
const VECTOR_PART = 2048;

/**
 * Most ratings of a row for the fused kernel, in which a workgroup solves whole rows. Longer rows are faster
 * if several workgroups share them.
 */
const FUSED_LONGEST = 2048;

type Shape = Pick<UpdateProblem, 'rank' | 'solver' | 'biases' | 'implicit'>;

/**
 * The main variants that a GPU supports for a problem's rank and solver. Without measurements, the first one
 * with the requested precision is chosen (see bestByRule in choose.ts). Order:
 *
 * 1. tensor cores with θ in float16
 * 2. tensor cores with θ in 8 bits (preferred to float16 where possible)
 * 3. CG by vectors, without computing A
 * 4. register tiles, without tensor cores, with θ in float32, then in float16
 *
 * For implicit data, CG by vectors is first: A is then float32, and too large for registers at these ranks.
 * On an H100 CG by vectors took 0.77 of the time of tensor cores at rank 144, and 0.14 at rank 256
 * (bench/results, `als-gpu-implicit-vectors`).
 */
export function updateVariants(info: GpuInfo, shape: Shape): UpdateVariant[] {
  const vectors = vectorVariants(info, shape);
  const onTensorCores = [...tensorVariants(info, shape), ...int8Variants(info, shape)];
  return [
    ...(shape.implicit === true ? [...vectors, ...onTensorCores] : [...onTensorCores, ...vectors]),
    ...tiledVariants(info, shape),
  ];
}

/**
 * All variants: the main ones (`updateVariants`), and the variants derived from them, which are only used if
 * the tuner found them fastest or a user names them.
 */
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
  // A of implicit data contains the Gram matrix of all of θ, which does not grow with n. So A / n, for a
  // large n, would lose digits in float16.
  const halfA = rank > FULL_REGISTERS && !implicit;
  const form = solvingForm(info, { rank, biases, implicit }, 'f16');
  const bins = tensorBins(rank);
  const sumBin =
    bins.sum.find((bin) => admits(info, normalEquationsTensorKernel, { rank, bin, biases, implicit })) ??
    LEAST_BIN;
  const common = {
    precision: 'f16',
    halfA,
    registers: registers(info, rank, halfA, biases),
    partRatings: PART_RATINGS,
  } as const;
  const sum = { kernel: 'tensor', bin: sumBin } as const;
  // With implicit data every row of θ contributes to every solved row. A dual system would have an unknown
  // for each row of θ, so `short` is 0.
  const shorts = [64, 32, 0].filter(
    (longest) =>
      longest === 0 ||
      (!implicit &&
        (solver === 'cg' || exactSolvers[solver].dual) &&
        admits(info, updateShortKernel, { rank, longest, biases, centre: biases })),
  );
  // A dual system has an unknown for each rating of a row, A has one for each feature. So up to rank 64, dual
  // systems for rows with 64 ratings gain nothing, and those for up to 32 ratings are preferred.
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
  const fused = { bin: fusedBin, longest: FUSED_LONGEST, workgroups: FUSED_WORKGROUPS, ...form } as const;
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

/**
 * Bins (numbers of ratings loaded at a time) of the fused kernel, the best first. If A is kept as operands of
 * the tensor cores (`halfA`), small bins are better: they leave memory for more workgroups at the same time.
 */
function fusedBins(rank: number, { halfA }: SolvingForm): readonly number[] {
  const { fused } = tensorBins(rank);
  return halfA ? fused.filter((bin) => bin <= (rank <= FULL_REGISTERS ? LEAST_BIN : 64)) : fused;
}

/**
 * The variants on tensor cores that read θ in 8 bits. Each is derived from a float16 variant and has the same
 * limit for dual systems (`short`).
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
 * Returns the variant for computing normal equations if θ is divided into partitions and each of them adds
 * its terms. That is the given variant, or for two kinds of variants the first other one with the same
 * precision: CG by vectors, which does not compute A, and 8 bits, whose scales are computed from all of θ.
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

/**
 * The variants of CG by vectors, which compute products A p without computing A. They are for ranks at which
 * A does not fit registers and workgroup memory. Above MOST_FORMED there are no others.
 */
function vectorVariants(info: GpuInfo, shape: Shape): UpdateVariant[] {
  const { rank, solver, biases, implicit = false } = shape;
  if (rank < VECTOR_RANKS || solver !== 'cg') return [];
  if (!admits(info, vectorStepKernel, { rank, biases, implicit, listed: true, phase: 'step' })) return [];
  return (['f16', 'f32'] as const).flatMap((precision): UpdateVariant[] => {
    const teams = teamsOf(info, shape, precision);
    if (teams === undefined) return [];
    const variant: UpdateVariant = {
      name: `vectors-${precision}`,
      precision,
      sum: { kernel: 'vectors', ...teams },
      short: 0,
      halfA: false,
      registers: false,
      partRatings: VECTOR_PART,
      regions: REGIONS,
    };
    return [variant];
  });
}

/** The threads that multiply ratings by vectors; undefined if the GPU cannot run the kernel. */
function teamsOf(
  info: GpuInfo,
  { rank, biases, implicit = false }: Shape,
  precision: 'f32' | 'f16',
): Omit<Extract<SumKernel, { readonly kernel: 'vectors' }>, 'kernel'> | undefined {
  const shape = { rank, precision, biases, implicit, first: true };
  if (rank <= MOST_FORMED) {
    const teams = chooseVectorProducts(rank, precision);
    return admits(info, vectorProductsKernel, { ...shape, ...teams }) ? teams : undefined;
  }
  const width = WIDTHS.find((one) => admits(info, wideProductsKernel, { ...shape, width: one }));
  return width === undefined ? undefined : { threads: wideThreads(rank), lanes: wideThreads(rank), width };
}

function named(name: string, short: number): string {
  return short === 0 ? name : `${name}-short${short}`;
}

function tiledVariants(info: GpuInfo, { rank, biases, implicit = false }: Shape): UpdateVariant[] {
  if (rank > MOST_FORMED) return [];
  const variants: UpdateVariant[] = [];
  const tiles = rank <= 32 ? [4, 8] : [8, 4];
  for (const precision of ['f32', 'f16'] as const) {
    for (const tile of tiles) {
      const {
        rank: _rank,
        precision: _precision,
        biases: _biases,
        implicit: _implicit,
        ...params
      } = chooseNormalEquations(rank, precision, biases, { tile: tile as 4 | 8 });
      if (!admits(info, normalEquationsKernel, { rank, precision, biases, implicit, ...params })) continue;
      variants.push({
        name: `tiled${tile}-${precision}`,
        precision,
        sum: { kernel: 'tiled', ...params },
        short: 0,
        halfA: false,
        registers: registers(info, rank, false, biases),
        partRatings: PART_RATINGS,
      });
    }
  }
  return variants;
}

/**
 * True if the GPU can run solve-cg-registers, the CG solver in which each thread has one row of A in
 * registers. If A is float32, this is limited to FULL_REGISTERS features.
 */
function registers(info: GpuInfo, rank: number, halfA: boolean, biases: boolean): boolean {
  const largest = halfA ? REGISTER_RANKS : FULL_REGISTERS;
  return (
    paddedRank(rank) <= largest && admits(info, solveCgRegistersKernel, { rank, halfA, biases, half: true })
  );
}
