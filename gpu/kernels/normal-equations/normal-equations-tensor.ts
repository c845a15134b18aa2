import type { GpuFeature, KernelDescriptor } from '../kernel.ts';
import { RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';
import { paddedRank, slotElements, tilesOf } from './slots.ts';
import { subgroupsFor, tensorPlan, type TensorPlan } from './tensor-plan.ts';
import { reads, writes } from '../bindings.ts';

/** Ranks that the solver on registers and the fused kernel serve: a thread a row of A. */
export const REGISTER_RANKS = 256;

const plans = new Map<number, TensorPlan>();

function planOf(rank: number): TensorPlan {
  const known = plans.get(rank);
  if (known !== undefined) return known;
  const plan = tensorPlan(rank);
  plans.set(rank, plan);
  return plan;
}

export type TensorParams = {
  readonly rank: number;
  /** Ratings staged at a time: a multiple of 16, at most the threads. */
  readonly bin: number;
  readonly biases: boolean;
};

/** What both kernels with tensor cores see. */
function accumulateValues({ rank, bin, biases }: TensorParams) {
  const plan = planOf(rank);
  const chunks = plan.tiles * 2;
  const threads = plan.subgroups * 32;
  const gatherRows = threads / plan.lanesPerRow;
  return {
    RANK: rank,
    PADDED: paddedRank(rank),
    TILES: plan.tiles,
    LOWER_TILES: (plan.tiles * (plan.tiles + 1)) / 2,
    SLOT_VECTORS: slotElements(rank) / 4,
    THREADS: threads,
    SUBGROUPS: plan.subgroups,
    BIN: bin,
    CHUNKS: chunks,
    /** Chunks that come from θ; the one behind them holds the rating. */
    FACTOR_CHUNKS: plan.ratingRow ? chunks : chunks - 1,
    STRIDE: chunks + 1,
    STAGED: Math.max(bin * (chunks + 1) + 1, plan.tiles * 80),
    LANES_PER_ROW: plan.lanesPerRow,
    GATHER_ROWS: gatherRows,
    RATING_ROW: plan.ratingRow,
    /** Line of the last tile row that holds b. */
    RATING_LINE: plan.ratingRow ? 0 : 8,
    BIASES: biases,
    passes: range(Math.max(1, bin / gatherRows)),
    steps: range(bin / 16),
    accumulators: range(plan.accumulators),
    deals: plan.deals,
    phases: plan.phases,
    tile_numbers: range(plan.tiles),
    other_subgroups: range(plan.subgroups).slice(1),
  };
}

const tensorNeeds: readonly GpuFeature[] = ['f16', 'subgroups', 'tensor'];

function accumulateBytes(params: TensorParams): number {
  return accumulateValues(params).STAGED * 16 + 4 * params.bin * 8;
}

function solverBytes(rank: number): number {
  return 2 * tilesOf(rank) * 4 * 16 + 2 * subgroupsFor(rank) * 16;
}

/**
 * A and b of parts of rows on tensor cores (MO-ALS, cuMF section 3, with the registers of the tensor cores as accumulators).
 * Factors are float16, sums float32. One workgroup a part.
 */
export const normalEquationsTensorKernel: KernelDescriptor<TensorParams> = {
  name: 'normal-equations-tensor',
  bindings: [...reads('work', 'indices', 'values', 'fixed', 'fixed_bias'), ...writes('slots')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'zero_row', type: 'u32' },
    { name: 'scale', type: 'f32' },
    { name: 'mean', type: 'f32' },
    { name: 'unscale', type: 'f32' },
  ],
  needs: () => tensorNeeds,
  values: accumulateValues,
  workgroup: (params) => ({ threads: subgroupsFor(params.rank) * 32, bytes: accumulateBytes(params) }),
};

export type UpdateTensorParams = TensorParams & {
  readonly steps: number;
  /** A/n as float16 in registers (cuMF_ALS, section 4.2); float32 otherwise. */
  readonly halfA: boolean;
};

function solverValues({ steps, halfA }: { readonly steps: number; readonly halfA: boolean }) {
  return { tolerance: RESIDUAL_TOLERANCE, STEPS: steps, HALF_A: halfA, zero_a: halfA ? 'vec2<u32>()' : 'vec4f()' };
}

/**
 * The fused half-iteration: A of a row never leaves the chip. Ranks to 256; float32 A to 128, where it fits the registers.
 * Workgroups walk the list of rows, so any number of them may be dispatched.
 */
export const updateTensorKernel: KernelDescriptor<UpdateTensorParams> = {
  name: 'update-tensor',
  bindings: [...reads('work', 'indices', 'values', 'fixed', 'fixed_bias', 'previous', 'previous_bias'), ...writes('factors', 'half', 'bias', 'status')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'zero_row', type: 'u32' },
    { name: 'scale', type: 'f32' },
    { name: 'unscale', type: 'f32' },
    { name: 'lambda', type: 'f32' },
    { name: 'mean', type: 'f32' },
  ],
  needs: () => tensorNeeds,
  values: (params) => ({ ...accumulateValues(params), ...solverValues(params) }),
  workgroup: (params) => ({ threads: subgroupsFor(params.rank) * 32, bytes: accumulateBytes(params) + solverBytes(params.rank) }),
};

export type SolveRegistersParams = {
  readonly rank: number;
  readonly steps: number;
  readonly halfA: boolean;
  readonly biases: boolean;
  /** Whether the float16 mirror of the factors is written too. */
  readonly half: boolean;
};

/** Rows from their slots by conjugate gradients with A in registers; ranks to 256, float32 A to 128. One workgroup a row. */
export const solveCgRegistersKernel: KernelDescriptor<SolveRegistersParams> = {
  name: 'solve-cg-registers',
  bindings: [...reads('work', 'slots', 'previous', 'previous_bias'), ...writes('factors', 'half', 'bias', 'status')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'lambda', type: 'f32' },
  ],
  needs: () => ['subgroups'],
  values: (params) => {
    const { rank, biases, half } = params;
    const subgroups = subgroupsFor(rank);
    return {
      RANK: rank,
      PADDED: paddedRank(rank),
      TILES: tilesOf(rank),
      LOWER_TILES: (tilesOf(rank) * (tilesOf(rank) + 1)) / 2,
      SLOT_VECTORS: slotElements(rank) / 4,
      THREADS: subgroups * 32,
      SUBGROUPS: subgroups,
      BIASES: biases,
      WRITE_HALF: half,
      tile_numbers: range(tilesOf(rank)),
      other_subgroups: range(subgroups).slice(1),
      ...solverValues(params),
    };
  },
  workgroup: ({ rank }) => ({ threads: subgroupsFor(rank) * 32, bytes: solverBytes(rank) }),
};

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
