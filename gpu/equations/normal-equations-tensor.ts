import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import type { GpuFeature } from '../webgpu/gpu-info.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import { centresRatings, subgroupsFor, tensorPlan, type TensorPlan } from './tensor-plan.ts';

const plans = new Map<string, TensorPlan>();

function planOf(rank: number, room: number): TensorPlan {
  const key = `${rank} ${room}`;
  const plan = plans.get(key) ?? tensorPlan(rank, room);
  plans.set(key, plan);
  return plan;
}

/**
 * Size of a 16 x 16 tile in workgroup memory, in groups of four numbers: 16 rows of five groups. The fifth
 * group of a row is padding, so that rows start at different memory banks.
 */
const TILE_VECTORS = 80;

export type TensorParams = {
  readonly rank: number;
  /**
   * Number of ratings that are copied to workgroup memory at a time: a multiple of 16, at most the number of
   * threads.
   */
  readonly bin: number;
  readonly biases: boolean;
  /**
   * True for implicit data, with weights w and targets t of the ratings. When rows of θ are copied to
   * workgroup memory they are multiplied by √w, and their rating becomes t / √w. Their products are then w
   * θθᵀ and t θ.
   */
  readonly implicit?: boolean;
};

/**
 * Size of the workgroup memory that holds the rows of θ for `bin` ratings, each followed by its rating, in
 * groups of 16 bytes.
 */
export function gatheredVectors({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): number {
  return bin * (tilesOf(rank) * 2 + 1) + 1;
}

/**
 * `staged`: size of the workgroup memory for rows of θ, in groups of 16 bytes. `plan`: divides the 16 x 16
 * tiles of A among the subgroups, and orders the moves of the sums of A through the same memory to the
 * threads.
 */
export function accumulatePlan({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): {
  readonly staged: number;
  readonly plan: TensorPlan;
} {
  const staged = Math.max(gatheredVectors({ rank, bin }), tilesOf(rank) * TILE_VECTORS);
  return { staged, plan: planOf(rank, Math.floor(staged / TILE_VECTORS)) };
}

/** Template values of the shader parts that compute A on tensor cores (parts/tensor.wgsl). */
export function accumulateValues(
  params: TensorParams,
): Readonly<Record<string, unknown>> & { readonly STAGED: number } {
  const { rank, bin, biases, implicit = false } = params;
  const chunks = tilesOf(rank) * 2;
  const { staged, plan } = accumulatePlan(params);
  const threads = plan.subgroups * 32;
  const gatherRows = threads / plan.lanesPerRow;
  return {
    RANK: rank,
    PADDED: paddedRank(rank),
    TILES: plan.tiles,
    LOWER_TILES: (plan.tiles * (plan.tiles + 1)) / 2,
    SLOT_VECTORS: slotElements(rank, biases) / 4,
    THREADS: threads,
    SUBGROUPS: plan.subgroups,
    BIN: bin,
    CHUNKS: chunks,
    /**
     * Number of 16-byte chunks with features in a row of θ in workgroup memory. The chunk after them contains
     * the rating.
     */
    FACTOR_CHUNKS: plan.ratingRow ? chunks : chunks - 1,
    STRIDE: chunks + 1,
    STAGED: staged,
    LANES_PER_ROW: plan.lanesPerRow,
    GATHER_ROWS: gatherRows,
    RATING_ROW: plan.ratingRow,
    /**
     * b, the products of θ with the ratings, is one row of the last tile row: row 0 if the ratings have a
     * tile row of their own, else row 8.
     */
    RATING_LINE: plan.ratingRow ? 0 : 8,
    BIASES: biases,
    CENTRE: centresRatings({ rank, biases }),
    IMPLICIT: implicit,
    INT8: false,
    HALF_A: false,
    /**
     * Settings of tensor-accumulate.wgsl that update-implicit-tensor overrides. GRAM: sums of A start at the
     * Gram matrix instead of 0. AHEAD: the including shader has already loaded the first rows of θ.
     */
    GRAM: false,
    AHEAD: false,
    passes: range(Math.max(1, bin / gatherRows)),
    steps: range(bin / 16),
    accumulators: range(plan.accumulators),
    deals: plan.deals,
    phases: plan.phases,
    tile_numbers: range(plan.tiles),
    other_subgroups: range(plan.subgroups).slice(1),
  };
}

export const tensorNeeds: readonly GpuFeature[] = ['f16', 'subgroups', 'tensor'];

export function accumulateBytes(params: TensorParams): number {
  return accumulateValues(params).STAGED * 16 + ringBytes(params);
}

/**
 * Bytes of the ring buffer of ratings in workgroup memory. It holds four bins (numbers of ratings that are
 * loaded at a time), with column and value of each rating in 8 bytes.
 */
export function ringBytes({ bin }: Pick<TensorParams, 'bin'>): number {
  return 4 * bin * 8;
}

/**
 * Computes A and b of rows or parts of rows on tensor cores, and writes them to slots (device/slots.ts). A
 * workgroup has one part (MO-ALS, cuMF section 3; the accumulators are tensor-core registers). θ is float16,
 * sums are float32. If `centresRatings` is true, the kernel subtracts the mean μ and the fixed side's biases
 * γ from the ratings; γ is `fixed_bias`, one number for each row of θ. Otherwise `fixed_bias` is not read,
 * and any buffer may be bound.
 */
export const normalEquationsTensorKernel = kernelOf<TensorParams>()({
  name: 'normal-equations-tensor',
  reads: {
    work: 'array<vec4<u32>>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<vec4<u32>>',
    fixed_bias: 'array<f32>',
  },
  writes: { slots: 'array<vec4<f32>>' },
  uniforms: {
    count: 'u32',
    zero_row: 'u32',
    scale: 'f32',
    unscale: 'f32',
    alpha: 'f32',
    base: 'f32',
    mean: 'f32',
  },
  needs: () => tensorNeeds,
  values: accumulateValues,
  workgroup: (params) => ({ threads: subgroupsFor(params.rank) * 32, bytes: accumulateBytes(params) }),
  samples: [
    { rank: 64, bin: 32, biases: false, implicit: true },
    { rank: 100, bin: 32, biases: false, implicit: true },
    { rank: 100, bin: 32, biases: true },
    { rank: 64, bin: 32, biases: false },
  ],
});
