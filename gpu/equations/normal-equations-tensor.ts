import type { GpuFeature } from '../webgpu/gpu-info.ts';
import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { centresRatings, subgroupsFor, tensorPlan, type TensorPlan } from './tensor-plan.ts';

const plans = new Map<string, TensorPlan>();

function planOf(rank: number, room: number): TensorPlan {
  const key = `${rank} ${room}`;
  const plan = plans.get(key) ?? tensorPlan(rank, room);
  plans.set(key, plan);
  return plan;
}

/**
 * Size of a tile in workgroup memory, in groups of four numbers: 16 rows of four groups, and one more group
 * for each row, so that rows start at different banks.
 */
const TILE_VECTORS = 80;

export type TensorParams = {
  readonly rank: number;
  /** Number of ratings staged at a time: a multiple of 16, at most the number of threads. */
  readonly bin: number;
  readonly biases: boolean;
  /**
   * For implicit data. Rows of θ are multiplied by √w when they are staged, and their rating becomes t / √w.
   * The products are then w θθᵀ and t θ.
   */
  readonly implicit?: boolean;
};

/** Memory of one bin's ratings and rows of θ, in groups of 16 bytes. */
export function gatheredVectors({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): number {
  return bin * (tilesOf(rank) * 2 + 1) + 1;
}

/**
 * Memory for staging, in groups of four numbers; and the plan by which the sums of A are moved through the
 * same memory from tensor cores to threads.
 */
export function accumulatePlan({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): {
  readonly staged: number;
  readonly plan: TensorPlan;
} {
  const staged = Math.max(gatheredVectors({ rank, bin }), tilesOf(rank) * TILE_VECTORS);
  return { staged, plan: planOf(rank, Math.floor(staged / TILE_VECTORS)) };
}

/** Template values of the shader parts that sum on tensor cores. */
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
     * Number of chunks of a staged row that contain features of θ; the chunk after them contains the rating.
     */
    FACTOR_CHUNKS: plan.ratingRow ? chunks : chunks - 1,
    STRIDE: chunks + 1,
    STAGED: staged,
    LANES_PER_ROW: plan.lanesPerRow,
    GATHER_ROWS: gatherRows,
    RATING_ROW: plan.ratingRow,
    /** The line of the last tile row that holds b. */
    RATING_LINE: plan.ratingRow ? 0 : 8,
    BIASES: biases,
    CENTRE: centresRatings({ rank, biases }),
    IMPLICIT: implicit,
    INT8: false,
    HALF_A: false,
    /**
     * False: sums start at 0, not at the Gram matrix, and the rows of the first bin are not loaded in
     * advance.
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

/** Bytes of the ring of columns and ratings. */
export function ringBytes({ bin }: Pick<TensorParams, 'bin'>): number {
  return 4 * bin * 8;
}

/**
 * Computes A and b of parts of rows on tensor cores, one workgroup a part (MO-ALS, cuMF section 3; the
 * accumulators are tensor-core registers). Factors are float16, sums float32. If `centresRatings` is true,
 * the kernel subtracts μ and γ from the ratings; γ is `fixed_bias`, one number for each row of θ. Otherwise
 * `fixed_bias` is not used, and any buffer may be bound.
 */
export const normalEquationsTensorKernel = kernelOf<TensorParams>()({
  name: 'normal-equations-tensor',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      fixed_bias: 'array<f32>',
    }),
    ...writes({ slots: 'array<vec4<f32>>' }),
  ],
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
