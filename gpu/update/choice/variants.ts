import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { MOST_FORMED, paddedRank, tilesOf } from '../../device/slots.ts';
import { normalEquationsTensorKernel } from '../../equations/normal-equations-tensor.ts';
import { chooseNormalEquations, normalEquationsKernel } from '../../equations/normal-equations.ts';
import { hasRatingRow } from '../../equations/tensor-plan.ts';
import { INT8_EVEN_LANES, INT8_RANKS, normalEquationsInt8Kernel } from '../../int8/int8-plan.ts';
import { exactSolvers } from '../../solve/exact-solvers.ts';
import { REGISTER_RANKS, solveCgRegistersKernel } from '../../solve/solve-cg.ts';
import {
  chooseVectorProducts,
  vectorProductsKernel,
  wideProductsKernel,
  wideThreads,
  WIDTHS,
} from '../../vectors/products.ts';
import { vectorStepKernel } from '../../vectors/row-phases.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { admits } from '../../webgpu/kernel.ts';
import { updateShortKernel } from '../update-short.ts';
import { updateImplicitTensorKernel, updateInt8Kernel, updateTensorKernel } from '../update-tensor.ts';
import { REGIONS, type UpdateVariant } from './variant.ts';

/**
 * Most ratings of one part of a row: long rows are cut, so that no workgroup runs much longer than the
 * others.
 */
const PART_RATINGS = 8192;

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

type Shape = Pick<UpdateProblem, 'rank' | 'solver' | 'biases' | 'implicit' | 'prior'>;

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

function tensorVariants(
  info: GpuInfo,
  { rank, solver, biases, implicit = false, prior = false }: Shape,
): UpdateVariant[] {
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
  // With implicit data every row of θ contributes to every solved row. A dual system would have an unknown
  // for each row of θ, so `short` is 0. The dual systems here have no priors.
  const shorts = [64, 32, 0].filter(
    (longest) =>
      longest === 0 ||
      (!implicit &&
        !prior &&
        (solver === 'cg' || exactSolvers[solver].dual) &&
        admits(info, updateShortKernel, { rank, longest, biases, centre: biases })),
  );
  // A dual system has an unknown for each rating of a row, A has one for each feature. So up to rank 64, dual
  // systems for rows with 64 ratings gain nothing, and those for up to 32 ratings are preferred.
  if (rank <= 64 && shorts.length === 3) shorts.unshift(...shorts.splice(1, 1));
  const variantsOf = (name: string, more: Pick<UpdateVariant, 'fused'> = {}) =>
    shorts.map((short): UpdateVariant => ({
      name: short === 0 ? name : `${name}-short${short}`,
      precision: 'f16',
      sum: { kernel: 'tensor', bin: sumBin },
      ...more,
      short,
      halfA,
      registers: registers(info, rank, halfA, biases),
      partRatings: PART_RATINGS,
    }));
  // If A is kept as operands of the tensor cores (`halfA`), small bins are better: they leave memory for more
  // workgroups at the same time.
  const mostBin = !form.halfA ? Infinity : rank <= FULL_REGISTERS ? LEAST_BIN : 64;
  const fusedBin = bins.fused.find(
    (bin) => bin <= mostBin && admitsFused(info, { rank, biases, implicit }, 'f16', { ...form, bin }),
  );
  if (solver !== 'cg' || prior || fusedBin === undefined) return variantsOf('tensor');
  const fused = { bin: fusedBin, longest: FUSED_LONGEST, ...form };
  return [...variantsOf('tensor-fused', { fused }), ...variantsOf('tensor')];
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
  return tensorVariants(info, shape)
    .map(({ fused, ...variant }): UpdateVariant => ({
      ...variant,
      name: variant.name.replace('tensor', 'int8'),
      precision: 'int8',
      sum: { kernel: 'int8' },
      fused: fused && { bin: fused.bin, longest: fused.longest, ...form },
    }))
    .filter((variant) => runs(info, variant, shape));
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
    const products = { rank, precision, biases, implicit, first: true };
    const width = WIDTHS.find((one) => admits(info, wideProductsKernel, { ...products, width: one }));
    const [lanes, narrow] = [wideThreads(rank), chooseVectorProducts(rank, precision)];
    const teams =
      rank > MOST_FORMED
        ? width && { threads: lanes, lanes, width }
        : admits(info, vectorProductsKernel, { ...products, ...narrow }) && narrow;
    if (!teams) return [];
    return [
      {
        name: `vectors-${precision}`,
        precision,
        sum: { kernel: 'vectors', ...teams },
        short: 0,
        halfA: false,
        registers: false,
        partRatings: VECTOR_PART,
        regions: REGIONS,
      },
    ];
  });
}

function tiledVariants(info: GpuInfo, shape: Shape): UpdateVariant[] {
  const { rank, biases } = shape;
  if (rank > MOST_FORMED) return [];
  const tiles = rank <= 32 ? ([4, 8] as const) : ([8, 4] as const);
  return (['f32', 'f16'] as const)
    .flatMap((precision) =>
      tiles.map((tile): UpdateVariant => {
        const { lanes, rows, teams, loads } = chooseNormalEquations(rank, precision, biases, { tile });
        return {
          name: `tiled${tile}-${precision}`,
          precision,
          sum: { kernel: 'tiled', tile, lanes, rows, teams, loads },
          short: 0,
          halfA: false,
          registers: registers(info, rank, false, biases),
          partRatings: PART_RATINGS,
        };
      }),
    )
    .filter((variant) => runs(info, variant, shape));
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

/**
 * Largest rank at which A fits the registers of a workgroup in float32, for kernels that read θ in float16.
 * Above this rank, A is kept in float16.
 */
export const FULL_REGISTERS = 144;

/** The same limit for kernels that read θ in 8 bits. */
const INT8_FULL_REGISTERS = 128;

/**
 * The form in which the fused kernel, which both computes A and solves, keeps A while it solves. `halfA`
 * true: A / n in float16, multiplied on tensor cores; `room` is the number of 16 x 16 tiles that are in
 * workgroup memory at the same time while A is moved there. `halfA` false: A in float32 in registers.
 */
interface SolvingForm {
  readonly halfA: boolean;
  readonly room?: number;
}

/**
 * Chooses how the fused kernel keeps A. `halfA` is true if A does not fit the registers, and also in these
 * cases, where it was measured to be faster (tiles: the rank divided by 16, rounded up):
 *
 * | precision of θ | biases | tiles |
 * |---|---|---|
 * | 8 bits | with or without | 7 |
 * | 8 bits | without | 8 |
 * | float16 | without | 9 |
 * | float16 | with, if the padding of A has room for the ratings (`hasRatingRow` false) | 9 |
 *
 * It is always false for implicit data. Measured on an H200 with data of Netflix's shape (bench/results,
 * `als-gpu-workgroups`, and docs/decisions/gpu-8-bits.md).
 */
function solvingForm(
  info: GpuInfo,
  { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>,
  precision: 'f16' | 'int8',
): SolvingForm {
  const tiles = tilesOf(rank);
  const halfA =
    !implicit &&
    (precision === 'f16'
      ? rank > FULL_REGISTERS || (tiles === 9 && !(biases && hasRatingRow(rank)))
      : rank > INT8_FULL_REGISTERS || tiles === 7 || (tiles === 8 && !biases));
  const room = halfA ? roomOf(precision, rank, biases) : undefined;
  return room !== undefined && admitsFused(info, { rank, biases }, precision, { bin: LEAST_BIN, halfA, room })
    ? { halfA, room }
    : { halfA };
}

/**
 * Number of 16 x 16 tiles of A that the fused kernel has in workgroup memory at the same time, when it moves
 * A from the accumulators of the tensor cores to their operands. The numbers are chosen for an H200.
 * Registers and 48 KiB of workgroup memory limit the workgroups that run at the same time on a
 * multiprocessor; with these numbers, memory is never the tighter limit. Undefined: the kernel's default.
 */
function roomOf(precision: 'f16' | 'int8', rank: number, biases: boolean): number | undefined {
  const tiles = tilesOf(rank);
  if (precision === 'f16') return tiles >= 11 ? 21 : tiles === 9 ? (biases ? 12 : 13) : undefined;
  if (tiles >= 9) return rank <= INT8_EVEN_LANES.ofRows ? 13 : 26;
  return tiles === 8 ? 8 : tiles === 7 ? 6 : undefined;
}

/** Largest rank of the fused kernel for implicit data, which adds the Gram matrix of θ to A. */
const IMPLICIT_REGISTERS = 128;

/**
 * True if the GPU can run the fused kernel for this problem. For implicit data it always keeps A in registers
 * in float32.
 */
function admitsFused(
  info: GpuInfo,
  { rank, biases, implicit = false }: Pick<UpdateProblem, 'rank' | 'biases' | 'implicit'>,
  precision: UpdateVariant['precision'],
  { bin, halfA, room }: SolvingForm & { readonly bin: number },
): boolean {
  if (implicit) return rank <= IMPLICIT_REGISTERS && admits(info, updateImplicitTensorKernel, { rank, bin });
  return precision === 'int8'
    ? admits(info, updateInt8Kernel, { rank, biases, halfA, room })
    : admits(info, updateTensorKernel, { rank, bin, biases, implicit, halfA, room });
}

/**
 * Largest rank at which the fused kernel can keep A in registers in float32. It depends on the precision in
 * which θ is read, which follows from the kernel that sums A.
 */
function fullRegisters(sum: UpdateVariant['sum']): number {
  return sum.kernel === 'int8' ? INT8_FULL_REGISTERS : FULL_REGISTERS;
}

/**
 * The smallest bin (number of ratings loaded at a time). Every GPU with tensor cores has enough workgroup
 * memory for it.
 */
const LEAST_BIN = 32;

/**
 * Bins (numbers of ratings loaded at a time) for the kernels on tensor cores, the best first. `sum`: for the
 * kernel that only computes A and b; `fused`: for the kernel that also solves. Larger bins hide more memory
 * latency, but need more registers, so that fewer workgroups run at the same time.
 *
 * Measured on an H200 at ranks 64 to 256 with data of Netflix's shape: above rank 64, bins of 64 shorten an
 * iteration by 3 to 16 % against bins of 32. Bins of 32 are better at ranks of 6 or 7 tiles of 16 features if
 * the padding of the last tile has room for the ratings (bench/results, `ranks` and `tensor-128`).
 */
function tensorBins(rank: number): { readonly sum: readonly number[]; readonly fused: readonly number[] } {
  const tiles = tilesOf(rank);
  const small = [LEAST_BIN];
  const large = [64, LEAST_BIN];
  if (tiles <= 4) return { sum: small, fused: small };
  if (!hasRatingRow(rank) && tiles === 6) return { sum: large, fused: small };
  if (!hasRatingRow(rank) && tiles === 7) return { sum: small, fused: small };
  if (tiles === 8) return { sum: [48, LEAST_BIN], fused: large };
  if (tiles === 13) return { sum: [96, ...large], fused: [96, ...large] };
  return { sum: large, fused: large };
}

/**
 * A change of one setting of a variant. `part` is appended to the variant's name. `apply` returns the changed
 * variant, or undefined if the change does not apply to it.
 */
interface Change {
  readonly part: string;
  apply(variant: UpdateVariant, shape: Shape): UpdateVariant | undefined;
}

/**
 * All changes, in groups of alternatives: a derived variant has at most one change of each group. Names list
 * changes in the order of the groups.
 */
const changes: readonly (readonly Change[])[] = [
  [1024, 8192].map((longest) => ({
    part: `to${longest}`,
    apply: (variant) => variant.fused && { ...variant, fused: { ...variant.fused, longest } },
  })),
  [
    {
      part: 'cores',
      apply: (variant, { implicit = false }) =>
        variant.fused === undefined || variant.fused.halfA || implicit
          ? undefined
          : { ...variant, fused: { ...variant.fused, halfA: true } },
    },
    {
      part: 'registers',
      apply: (variant, { rank }) =>
        variant.fused?.halfA === true && rank <= fullRegisters(variant.sum)
          ? { ...variant, fused: { ...variant.fused, halfA: false, room: undefined } }
          : undefined,
    },
  ],
  [64, 128].map((threads) => ({ part: `threads${threads}`, apply: withThreads(threads) })),
  [16, 32, 64].map((bin) => ({
    part: `bin${bin}`,
    apply: (variant) => (variant.sum.kernel === 'tensor' ? binned(variant, variant.sum, bin) : undefined),
  })),
];

function binned(
  variant: UpdateVariant,
  sum: Extract<UpdateVariant['sum'], { readonly kernel: 'tensor' }>,
  bin: number,
): UpdateVariant | undefined {
  if (sum.bin === bin && (variant.fused?.bin ?? bin) === bin) return undefined;
  return { ...variant, sum: { ...sum, bin }, fused: variant.fused && { ...variant.fused, bin } };
}

/** Workgroups of at most `threads` threads for register tiles, if that differs from the rule. */
function withThreads(threads: number): Change['apply'] {
  return (variant, { rank, biases }) => {
    const { sum, precision } = variant;
    if (sum.kernel !== 'tiled' || precision === 'int8') return undefined;
    const { lanes, rows, teams, loads } = chooseNormalEquations(rank, precision, biases, {
      threads,
      tile: sum.tile,
    });
    if (lanes === sum.lanes && rows === sum.rows) return undefined;
    return { ...variant, sum: { ...sum, lanes, rows, teams, loads } };
  };
}

/**
 * Derives variants from the given ones by one or more changes of settings. A derived variant is named after
 * its base and the changes: "tensor-fused-short64-to1024-bin16", "tiled8-f32-threads64". It is only used
 * if the tuner measured it fastest or a user names it. Derived variants exist because the fastest settings
 * differ from device to device and must be measured (clMF, section 3).
 */
function moreVariants(info: GpuInfo, shape: Shape, among: readonly UpdateVariant[]): UpdateVariant[] {
  return among.flatMap((variant) => {
    let grown = [variant];
    for (const group of changes) grown = grown.concat(grown.flatMap((one) => applied(one, group, shape)));
    return grown.slice(1).filter((one) => runs(info, one, shape));
  });
}

function applied(variant: UpdateVariant, group: readonly Change[], shape: Shape): UpdateVariant[] {
  return group.flatMap(({ part, apply }) => {
    const changed = apply(variant, shape);
    return changed === undefined ? [] : [{ ...changed, name: `${variant.name}-${part}` }];
  });
}

function runs(
  info: GpuInfo,
  { precision, sum, fused }: UpdateVariant,
  { rank, biases, implicit = false }: Shape,
): boolean {
  if (fused !== undefined && !admitsFused(info, { rank, biases, implicit }, precision, fused)) return false;
  if (sum.kernel === 'tensor')
    return admits(info, normalEquationsTensorKernel, { rank, bin: sum.bin, biases, implicit });
  if (sum.kernel !== 'tiled' || precision === 'int8') return true;
  const { kernel: _kernel, ...tiles } = sum;
  return admits(info, normalEquationsKernel, { rank, precision, biases, implicit, ...tiles });
}

/**
 * The variants that differ from the variant `name` in exactly one setting, as their names show: "tiled4-f32"
 * differs from "tiled8-f32" in one hyphenated part, and "tensor-short32" has one more part than "tensor".
 */
export function neighboursOf(name: string, among: readonly UpdateVariant[]): UpdateVariant[] {
  const own = partsOf(name);
  return among.filter((variant) => {
    const other = partsOf(variant.name);
    const kinds = new Set([...own.keys(), ...other.keys()]);
    return [...kinds].filter((kind) => own.get(kind) !== other.get(kind)).length === 1;
  });
}

/**
 * Splits a name at its hyphens. Each part is keyed by its text without trailing digits: "tiled" for "tiled8",
 * "f" for "f16".
 */
function partsOf(name: string): ReadonlyMap<string, string> {
  return new Map(name.split('-').map((part) => [part.replace(/\d+$/, ''), part]));
}
