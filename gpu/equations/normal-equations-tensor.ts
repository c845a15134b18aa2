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

/** Groups of four numbers of a tile in workgroup memory: rows of four and a fifth that spreads the banks. */
const TILE_VECTORS = 80;

export type TensorParams = {
  readonly rank: number;
  /** Ratings staged at a time: a multiple of 16, at most the threads. */
  readonly bin: number;
  readonly biases: boolean;
  /**
   * Of implicit data: rows of θ are staged times √w, and t / √w is their rating, so that the products are w
   * θθᵀ and t θ.
   */
  readonly implicit?: boolean;
};

/** Groups of 16 bytes that ratings and rows of θ take. */
export function gatheredVectors({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): number {
  return bin * (tilesOf(rank) * 2 + 1) + 1;
}

/**
 * Groups of four numbers that are staged, and the plan by which A leaves the tensor cores through the same
 * memory.
 */
export function accumulatePlan({ rank, bin }: Pick<TensorParams, 'rank' | 'bin'>): {
  readonly staged: number;
  readonly plan: TensorPlan;
} {
  const staged = Math.max(gatheredVectors({ rank, bin }), tilesOf(rank) * TILE_VECTORS);
  return { staged, plan: planOf(rank, Math.floor(staged / TILE_VECTORS)) };
}

/** Values of the parts that sum on tensor cores. */
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
    /** Chunks that come from θ; the next one holds the rating. */
    FACTOR_CHUNKS: plan.ratingRow ? chunks : chunks - 1,
    STRIDE: chunks + 1,
    STAGED: staged,
    LANES_PER_ROW: plan.lanesPerRow,
    GATHER_ROWS: gatherRows,
    RATING_ROW: plan.ratingRow,
    /** Line of the last tile row that holds b. */
    RATING_LINE: plan.ratingRow ? 0 : 8,
    BIASES: biases,
    CENTRE: centresRatings({ rank, biases }),
    IMPLICIT: implicit,
    INT8: false,
    HALF_A: false,
    /** Sums begin with the Gram matrix; rows of the first bin are gathered ahead. */
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
 * A and b of parts of rows on tensor cores (MO-ALS, cuMF section 3, with the registers of the tensor cores as
 * accumulators). Factors are float16, sums float32. Each part has one workgroup. Where centresRatings is
 * true, μ and γ (`fixed_bias`, as many as rows of θ) are taken off the ratings; elsewhere other numbers serve
 * as `fixed_bias`.
 *
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
