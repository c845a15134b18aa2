import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { matrixElements, paddedRank, slotElements } from '../device/slots.ts';

/** One way of computing the normal equations; variants differ in speed and in the precision of θ. */
export type NormalEquationsParams = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  /** Side of the tile of A that a thread keeps (cuMF_ALS, section III: T). */
  readonly tile: 4 | 8;
  /** Rows of θ staged at a time (cuMF, section 3.3: bin). */
  readonly bin: number;
  /** Threads that serve one part of a row. */
  readonly lanes: number;
  /** Parts that share a workgroup: thread batching (clMF, section 3.2.1). */
  readonly rows: number;
  /**
   * Neighbouring threads read neighbouring elements of one row of θ, or the same element of several
   * rows (cuMF_ALS, Figure 3).
   */
  readonly staging: 'coalesced' | 'strided';
  /** A thread reads 16 bytes of θ at a time instead of 4 (clMF, section 3.3.3). */
  readonly vectorized: boolean;
  /**
   * Memory in which A is summed. `memory` means the slot itself; it exists to measure the gain of registers
   * (cuMF, section 3.4).
   */
  readonly accumulate: 'registers' | 'memory';
  /**
   * The triangles of A that are computed. `full` exists to measure the gain of leaving one out; it requires
   * registers.
   */
  readonly triangle: 'lower' | 'full';
  /** s and t are summed too. */
  readonly biases: boolean;
  /** For implicit data: sums Σ w θθᵀ and Σ t θ instead; see operators/tasks/implicit-tasks.ts. */
  readonly implicit?: boolean;
};

function sides({ rank, tile, lanes, triangle }: NormalEquationsParams) {
  const side = paddedRank(rank) / tile;
  const blocks = triangle === 'full' ? side * side : (side * (side + 1)) / 2;
  return { side, blocks, groups: Math.ceil(blocks / lanes) };
}

/** Workgroups that sum `count` parts. */
export function normalEquationsWorkgroups(params: NormalEquationsParams, count: number): number {
  return Math.ceil(count / params.rows) * sides(params).groups;
}

/**
 * A variant for workgroups of at most `threads` threads and `bytes` bytes of workgroup memory: registers,
 * coalesced 16-byte reads, and enough rows for about 128 threads a workgroup.
 */
export function chooseNormalEquations(
  rank: number,
  precision: 'f32' | 'f16',
  biases: boolean,
  {
    threads = 256,
    bytes = 16384,
    tile = rank <= 32 ? 4 : 8,
  }: { readonly threads?: number; readonly bytes?: number; readonly tile?: 4 | 8 } = {},
): NormalEquationsParams {
  const common = {
    rank,
    precision,
    tile,
    staging: 'coalesced',
    vectorized: true,
    accumulate: 'registers',
    triangle: 'lower',
    biases,
  } as const;
  const { blocks } = sides({ ...common, bin: 1, lanes: 1, rows: 1 });
  const groups = Math.ceil(blocks / Math.min(threads, 256));
  const lanes = Math.ceil(blocks / groups);
  const rows = Math.max(1, Math.min(8, Math.floor(128 / lanes)));
  const bin = Math.max(1, Math.min(32, Math.floor(bytes / (rows * (4 * paddedRank(rank) + 12)))));
  return { ...common, bin, lanes, rows };
}

/**
 * A = Σ θ_v θ_vᵀ and b = Σ r_uv θ_v (cuMF, eq. 2 without λ) of parts of rows, written to slots (slots.ts).
 *
 * - `work` lists the parts (gpu/update/work.ts): row, first rating, ratings, slot.
 * - `fixed` is θ with a stride of whole tiles, in float32 or float16 by `precision`.
 * - With biases s and t are summed too, and the ratings are already centred (subtract-bias).
 */
export const normalEquationsKernel = kernelOf<NormalEquationsParams>()({
  name: 'normal-equations',
  bindings: [
    ...reads({
      work: 'array<vec4u>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<{{ loaded }}>',
    }),
    ...writes({ slots: 'array<vec4f>' }),
  ],
  uniforms: {
    count: 'u32',
    alpha: 'f32',
    base: 'f32',
  },
  needs: () => [],
  values(params) {
    const { rank, precision, tile, bin, lanes, rows, vectorized, accumulate, triangle, biases } = params;
    if (accumulate === 'memory' && triangle === 'full')
      throw new Error(
        'kernel normal-equations: a slot has no room for the upper triangle; accumulate in registers',
      );
    const stride = paddedRank(rank);
    const { side, blocks, groups } = sides(params);
    const elements = { f32: vectorized ? 4 : 1, f16: vectorized ? 8 : 2 }[precision];
    const quads = range(tile / 4);
    return {
      implicit: false,
      ...params,
      TILE: tile,
      BIN: bin,
      LANES: lanes,
      ROWS: rows,
      THREADS: lanes * rows,
      STRIDE: stride,
      QUADS: stride / 4,
      SLOT_QUADS: slotElements(rank, biases) / 4,
      BIAS_START: matrixElements(rank) / 4,
      SIDE: side,
      BLOCKS: blocks,
      GROUPS: groups,
      PIECES: stride / elements,
      loaded: precision === 'f32' ? (vectorized ? 'vec4f' : 'f32') : vectorized ? 'vec4u' : 'u32',
      quads,
      sums: range(tile).flatMap((row) =>
        quads.map((quad) => ({
          name: `sum_${row}_${quad}`,
          left: element(row),
          right: quad,
          offset: 4 * row + quad,
        })),
      ),
      mirror: range(tile).flatMap((row) =>
        quads.map((quad) => ({
          offset: 4 * row + quad,
          elements: range(4)
            .map((i) => `sum_${4 * quad + i}_${element(row)}`)
            .join(', '),
        })),
      ),
      bias_parts: range(Math.ceil(stride / 4 / lanes)),
    };
  },
  workgroup: ({ rank, bin, lanes, rows, implicit }) => ({
    threads: lanes * rows,
    bytes: rows * bin * (4 * paddedRank(rank) + (implicit ? 12 : 8)),
  }),
  samples: [
    chooseNormalEquations(10, 'f32', false),
    chooseNormalEquations(100, 'f16', true),
    { ...chooseNormalEquations(40, 'f32', false), implicit: true },
    { ...chooseNormalEquations(200, 'f16', false), vectorized: false, staging: 'strided', triangle: 'full' },
    { ...chooseNormalEquations(512, 'f32', true), vectorized: false, accumulate: 'memory' },
  ],
});

/** Name of element i in a sequence of vec4: "1.z" for 6. */
function element(i: number): string {
  return `${Math.floor(i / 4)}.${'xyzw'[i % 4]}`;
}
