import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { matrixElements, paddedRank, slotElements } from '../device/slots.ts';

/**
 * Settings of the kernel `normal-equations`, which computes A and b without tensor cores. Settings differ in
 * speed; `precision` also differs in the result.
 */
export type NormalEquationsParams = {
  readonly rank: number;
  /** Precision in which θ is read: the float32 matrix or its float16 copy. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  /** Side of the square tile of A that a thread sums (T in cuMF_ALS, section III). */
  readonly tile: 4 | 8;
  /** Number of rows of θ that are copied to workgroup memory at a time (bin in cuMF, section 3.3). */
  readonly bin: number;
  /** Number of threads that sum one part of a row. (Long rows are cut into parts.) */
  readonly lanes: number;
  /** Number of parts of rows that share a workgroup (thread batching, clMF, section 3.2.1). */
  readonly rows: number;
  /**
   * `coalesced`: neighbouring threads read neighbouring elements of one row of θ. `strided`: they read the
   * same element of several rows (cuMF_ALS, Figure 3).
   */
  readonly staging: 'coalesced' | 'strided';
  /** True: a thread reads 16 bytes of θ at a time; false: 4 bytes (clMF, section 3.3.3). */
  readonly vectorized: boolean;
  /**
   * `registers`: A is summed in registers and then written to its slot in device memory. `memory`: A is
   * summed in the slot itself, only to measure the gain of registers (cuMF, section 3.4).
   */
  readonly accumulate: 'registers' | 'memory';
  /**
   * `lower`: only the lower triangle of A is computed. `full`: both are, only to measure the gain of `lower`;
   * it requires registers.
   */
  readonly triangle: 'lower' | 'full';
  /** True: also sums s = Σ θ_v and t = Σ r_uv, which the solver needs for the row's bias. */
  readonly biases: boolean;
  /**
   * True: computes Σ w θθᵀ and Σ t θ, with weights w and targets t of implicit data; see
   * operators/tasks/implicit-tasks.ts.
   */
  readonly implicit?: boolean;
};

function sides({ rank, tile, lanes, triangle }: NormalEquationsParams) {
  const side = paddedRank(rank) / tile;
  const blocks = triangle === 'full' ? side * side : (side * (side + 1)) / 2;
  return { side, blocks, groups: Math.ceil(blocks / lanes) };
}

/** Number of workgroups to dispatch for `count` parts of rows. */
export function normalEquationsWorkgroups(params: NormalEquationsParams, count: number): number {
  return Math.ceil(count / params.rows) * sides(params).groups;
}

/**
 * Chooses settings for workgroups of at most `threads` threads and `bytes` bytes of workgroup memory: sums in
 * registers, coalesced reads of 16 bytes, and enough parts of rows in a workgroup for about 128 threads.
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
 * Computes A = Σ θ_v θ_vᵀ and b = Σ r_uv θ_v (cuMF, eq. 2 without λ) over the ratings of rows or parts of
 * rows, without tensor cores, and writes them to slots (device/slots.ts).
 *
 * - `work`: list of the parts, with entries (row, first rating, number of ratings, slot); see
 *   gpu/update/work.ts.
 * - `fixed`: θ, in float32 or float16 as `precision` says, each row padded to whole 16 x 16 tiles.
 * - With biases, s = Σ θ_v and t = Σ r_uv are summed too. The mean and the fixed side's biases must have been
 *   subtracted from the ratings (subtract-bias).
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

/** Name of element i of consecutive vec4 variables: "1.z" for element 6. */
function element(i: number): string {
  return `${Math.floor(i / 4)}.${'xyzw'[i % 4]}`;
}
