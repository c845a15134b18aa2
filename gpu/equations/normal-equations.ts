import { matrixElements, paddedRank, slotElements, TILE, tilesOf } from '../device/slots.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';

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
  /** Number of threads that sum one part of a row. (Long rows are cut into parts.) */
  readonly lanes: number;
  /** Number of parts of rows that share a workgroup (thread batching, clMF, section 3.2.1). */
  readonly rows: number;
  /**
   * Ratings at a time (bin in cuMF, section 3.3): `teams` times `loads`. The threads of a team load a row of
   * θ together, 16 bytes each, and a team loads `loads` rows.
   */
  readonly teams: number;
  readonly loads: number;
  /** True: also sums s = Σ θ_v and t = Σ r_uv, which the solver needs for the row's bias. */
  readonly biases: boolean;
  /**
   * True: computes Σ w θθᵀ and Σ t θ, with weights w and targets t of implicit data; see
   * operators/tasks/implicit-tasks.ts.
   */
  readonly implicit?: boolean;
};

type Form = Pick<NormalEquationsParams, 'rank' | 'precision' | 'tile'>;

/** Most parts of rows in a workgroup, and most rows of θ that a thread loads at a time. */
const MOST = { rows: 8, loads: 4 };

/**
 * Most ratings whose products are unrolled. On an H100 unrolling is faster with one row in a workgroup, and
 * gains nothing with several rows (docs/decisions/gpu-register-tiles.md).
 */
const MOST_UNROLLED = 16;

/**
 * Numbers of tiles of a side and of blocks of A, and of 16-byte pieces of θ for a rating: `quads` in
 * workgroup memory, `units` that are loaded.
 */
function shape({ rank, precision, tile }: Form) {
  const side = Math.ceil(rank / tile);
  // A unit of float16 has eight features: two tiles of four.
  const staged = precision === 'f16' && tile === 4 ? 2 * Math.ceil(side / 2) : side;
  const quads = (staged * tile) / 4;
  return {
    side,
    staged,
    quads,
    units: precision === 'f32' ? quads : quads / 2,
    blocks: (side * (side + 1)) / 2,
  };
}

/** Number of workgroups to dispatch for `count` parts of rows. */
export function normalEquationsWorkgroups(params: NormalEquationsParams, count: number): number {
  return Math.ceil(count / params.rows) * Math.ceil(shape(params).blocks / params.lanes);
}

/**
 * Chooses settings for workgroups of at most `threads` threads and `bytes` bytes of workgroup memory, by
 * default what every GPU has: the number of rows that leaves the fewest threads of subgroups of 32 idle, and
 * then the number of ratings at a time for which there is memory. With θ in float16, tiles of 8 and ranks to
 * 64, workgroups of at most 128 threads are faster: on an H100 sums at rank 64 take 32.0 ms, not 38.0.
 */
export function chooseNormalEquations(
  rank: number,
  precision: 'f32' | 'f16',
  biases: boolean,
  {
    tile = rank <= 32 ? 4 : 8,
    threads = precision === 'f16' && tile === 8 && rank <= 64 ? 128 : 256,
    bytes = 16384,
  }: { readonly threads?: number; readonly bytes?: number; readonly tile?: 4 | 8 } = {},
): NormalEquationsParams {
  const form = { rank, precision, tile };
  const { blocks, quads, units } = shape(form);
  const groups = Math.ceil(blocks / threads);
  const lanes = 4 * Math.ceil(Math.max(units, Math.ceil(blocks / groups)) / 4);
  const room = Math.floor(bytes / (2 * 16 * quads));
  const rows = range(Math.max(1, Math.min(MOST.rows, Math.floor(threads / lanes), Math.floor(room / 2))))
    .map((i) => i + 1)
    .sort((left, right) => idle(left * lanes) - idle(right * lanes) || left - right)[0];
  const bin = Math.max(1, Math.floor(room / rows));
  const teams = Math.min(Math.floor(lanes / units), bin);
  const loads = Math.max(1, Math.min(MOST.loads, Math.floor(bin / teams)));
  return { ...form, biases, lanes, rows, teams, loads };
}

/** Share of idle threads in a workgroup: of whole subgroups, and of at least two. */
function idle(threads: number): number {
  return 1 - threads / Math.max(64, 32 * Math.ceil(threads / 32));
}

/**
 * Computes A = Σ θ_v θ_vᵀ and b = Σ r_uv θ_v (cuMF, eq. 2 without λ) over the ratings of rows or parts of
 * rows, without tensor cores, and writes them to slots (device/slots.ts). Rows of θ are loaded to registers
 * while the ratings before them are summed.
 *
 * - `work`: list of the parts, with entries (row, first rating, number of ratings, slot); see
 *   gpu/update/deal-rows.ts.
 * - `fixed`: θ, in float32 or float16 as `precision` says, each row padded to whole 16 x 16 tiles.
 * - With biases, s = Σ θ_v and t = Σ r_uv are summed too. The mean and the fixed side's biases must have been
 *   subtracted from the ratings (subtract-bias).
 */
export const normalEquationsKernel = kernelOf<NormalEquationsParams>()({
  name: 'normal-equations',
  reads: {
    work: 'array<vec4u>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<{{ element }}>',
  },
  writes: { slots: 'array<vec4f>' },
  uniforms: { count: 'u32', alpha: 'f32', base: 'f32' },
  values(params) {
    const { rank, precision, tile, lanes, rows, teams, loads, biases } = params;
    const stride = paddedRank(rank);
    const { side, staged, blocks, quads, units } = shape(params);
    const element = precision === 'f32' ? 'vec4f' : 'vec4u';
    return {
      implicit: false,
      ...params,
      TILE: tile,
      TILES: tilesOf(rank),
      SIDE: side,
      TILES_OF_SIDE: staged,
      BLOCKS: blocks,
      GROUPS: Math.ceil(blocks / lanes),
      LANES: lanes,
      ROWS: rows,
      THREADS: lanes * rows,
      TEAMS: teams,
      BIN: teams * loads,
      UNROLLED: unrolledOf(params),
      unrolled: range(unrolledOf(params)),
      UNITS: units,
      UNITS_OF_ROW: stride / (precision === 'f32' ? 4 : 8),
      UNIT_STEP: precision === 'f16' && tile === 4 ? 2 : 1,
      QUADS: quads,
      QUADS_OF_ROW: stride / 4,
      SLOT_QUADS: slotElements(rank, biases) / 4,
      BIAS_START: matrixElements(rank) / 4,
      COMPUTED: side * tile - TILE * (tilesOf(rank) - 1),
      element,
      loads: range(loads),
      quads:
        precision === 'f32'
          ? [{ index: 0, offset: 0, content: 'content' }]
          : ['xy', 'zw'].map(([first, second], index) => ({
              index,
              offset: index * (tile === 8 ? staged : 1),
              content: `vec4f(unpack2x16float(content.${first}), unpack2x16float(content.${second}))`,
            })),
      ...blockOf(tile),
      vectors: [
        { name: 'bias', about: 'b', offset: 0, quads: stride / 4 },
        // t is stored after the last quad of s.
        ...(biases ? [{ name: 'ones', about: 's and t', offset: stride / 4, quads: stride / 4 + 1 }] : []),
      ],
    };
  },
  workgroup: (params) => ({
    threads: params.lanes * params.rows,
    bytes: 2 * params.rows * params.teams * params.loads * shape(params).quads * 16,
  }),
  samples: [
    chooseNormalEquations(10, 'f32', false),
    chooseNormalEquations(10, 'f16', false),
    chooseNormalEquations(100, 'f16', true),
    { ...chooseNormalEquations(40, 'f32', false), implicit: true },
    chooseNormalEquations(512, 'f32', true),
  ],
});

/** Number of ratings whose products are unrolled: a divisor of the bin. */
function unrolledOf({ rows, teams, loads }: NormalEquationsParams): number {
  if (rows > 1) return 1;
  const bin = teams * loads;
  let most = Math.min(bin, MOST_UNROLLED);
  while (bin % most !== 0) most--;
  return most;
}

/** A thread's block of sums, row by row, and the columns of the block as rows of its mirror image. */
function blockOf(tile: number) {
  const quads = range(tile / 4);
  return {
    quads_of_tile: quads,
    sums: range(tile).flatMap((row) =>
      quads.map((right) => ({
        name: `sum_${row}_${right}`,
        left: elementName(row),
        right,
        offset: 4 * row + right,
      })),
    ),
    mirror: range(tile).flatMap((row) =>
      quads.map((quad) => ({
        offset: 4 * row + quad,
        elements: range(4)
          .map((i) => `sum_${4 * quad + i}_${elementName(row)}`)
          .join(', '),
      })),
    ),
  };
}

/** Name of element i of consecutive vec4 variables: "1.z" for element 6. */
function elementName(i: number): string {
  return `${Math.floor(i / 4)}.${'xyzw'[i % 4]}`;
}
