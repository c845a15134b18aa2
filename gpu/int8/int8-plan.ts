import { range } from '../webgpu/kernel.ts';
import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { hasRatingRow, type TensorPlan, tensorPlan } from '../equations/tensor-plan.ts';

/** Ratings staged at a time: four for each of sixteen groups of threads. */
const BIN = 64;

/**
 * Distance in workgroup memory between the lines of two features, in groups of 16 bytes. It is odd to avoid
 * bank conflicts.
 */
const ROW_VECTORS = BIN / 16 + 1;

/** Groups of four numbers of a tile of A in workgroup memory, see normal-equations-tensor. */
const TILE_VECTORS = 80;

/** Smallest and largest rank of the 8-bit kernels. Each thread takes one rating of a bin and one row of A. */
export const INT8_RANKS = { least: 33, most: 256 } as const;

/** Most ratings of a part: a sum of this number of products of 8-bit numbers fits 32 bits. */
export const INT8_PART = 2 ** 17;

/**
 * Largest rounded rating. Ratings are stored in 16 bits; the rest of the range is left for subtracting
 * biases before clamping.
 */
const LARGEST_NUMBER = 8192;

/** The power of two by which ratings are multiplied before they are rounded to whole numbers. */
export function int8Scale(largestRating: number): number {
  return 2 ** Math.floor(Math.log2(LARGEST_NUMBER / Math.max(largestRating, 2 ** -20)));
}

/** Groups of 16 bytes in a row of θ in 8 bits, rounded up to an even number. */
export function int8Pieces(rank: number): number {
  return 2 * Math.ceil(tilesOf(rank) / 2);
}

/** Bytes of the 8-bit mirror of a matrix with `rows` rows, including its row of zeros. */
export function int8Bytes(rows: number, rank: number): number {
  return 16 * int8Pieces(rank) * (rows + 1);
}

/**
 * Number of subgroups of a workgroup: a thread loads 16 features of a row of θ, and sixteen rows are loaded
 * at a time.
 */
function int8Subgroups(shape: Int8Shape): number {
  return lanesOf(shape) / 2;
}

/**
 * A row of θ with more than eight tiles is loaded by an even number of threads if the rank is at most this
 * (`ofRows`: in the kernel that also solves with A in float16). Other rows: by a power of two threads.
 * With the even number, workgroups have five or six subgroups instead of eight, and no thread is idle. But
 * each subgroup has more tiles of A in registers, which at larger ranks reduces the number of concurrent
 * workgroups (measured on an H200).
 */
export const INT8_EVEN_LANES = { ofSums: 168, ofRows: 152 } as const;

/** Threads that load a row of θ. */
function lanesOf({ rank, halfA = false }: Int8Shape): number {
  const tiles = tilesOf(rank);
  return tiles > 8 && rank <= (halfA ? INT8_EVEN_LANES.ofRows : INT8_EVEN_LANES.ofSums)
    ? 2 * Math.ceil(tiles / 2)
    : 2 ** Math.ceil(Math.log2(tiles));
}

const plans = new Map<string, TensorPlan>();

function planOf(rank: number, room: number, subgroups: number): TensorPlan {
  const key = `${rank} ${room} ${subgroups}`;
  const plan = plans.get(key) ?? tensorPlan(rank, room, subgroups);
  plans.set(key, plan);
  return plan;
}

/**
 * Groups of a tile, with padding, so that lanes that store to lines of different tiles use different banks.
 */
function tileVectorsOf(lanes: number): number {
  return 16 * ROW_VECTORS + Math.max(1, 8 / lanes);
}

/** Bins of the rings of columns and ratings. */
const RING_BINS = 3;

/** 16-byte groups of a bin of a ring. */
const RING_VECTORS = BIN / 4;

/**
 * A ring buffer in workgroup memory, in groups of 16 bytes: its start, the distance between bins, and the
 * distance between groups of four ratings.
 */
interface Ring {
  readonly first: number;
  readonly bin: number;
  readonly four: number;
}

interface Int8Plan {
  /** 16-byte groups of workgroup memory. */
  readonly staged: number;
  /** The first group of θ's tiles. The lines of the ratings are stored before it. */
  readonly front: number;
  readonly columns: Ring;
  readonly rated: Ring;
  readonly plan: TensorPlan;
}

/** `halfA`: see update-tensor; absent for kernels that only sum, or that keep A in registers. */
export interface Int8Shape {
  readonly rank: number;
  readonly biases: boolean;
  readonly halfA?: boolean;
}

/**
 * Number of bins whose rows of θ are loaded in advance. Two hide more latency, unless their registers leave
 * room for one workgroup fewer. Measured on an H200 at ranks 64, 100, 128 and from 136 to 152 with Netflix's
 * shape.
 */
export const BINS_AHEAD = {
  ofSums: (rank: number): 1 | 2 =>
    tilesOf(rank) <= 7 || (tilesOf(rank) === 10 && !hasRatingRow(rank)) ? 2 : 1,
  ofRows: ({ rank, biases }: Int8Shape): 1 | 2 =>
    biases && tilesOf(rank) >= 5 && tilesOf(rank) <= 7 ? 2 : 1,
} as const;

/**
 * Layout of the 8-bit kernels' workgroup memory, and the plan by which A is moved from tensor cores through
 * it. Its size determines the number of rows that a multiprocessor works on at the same time.
 *
 * Each line of a tile has 16 bytes of padding. With at least three free tiles the rings are stored in this
 * padding, after the tiles that CG's vectors use. Otherwise they are stored after all tiles, for example if
 * operands and products of CG use every tile.
 */
export function int8Plan(shape: Int8Shape): Int8Plan {
  const { rank, biases, halfA = false } = shape;
  const tiles = tilesOf(rank);
  const subgroups = int8Subgroups(shape);
  const tileVectors = tileVectorsOf(lanesOf(shape));
  // Lines of ratings: two digits, and with biases ones.
  const front = hasRatingRow(rank) ? (biases ? 3 : 2) * ROW_VECTORS : 0;
  let staged = front + (tiles - 1) * tileVectors + 16 * ROW_VECTORS;
  let tile = halfA ? tiles : Math.ceil((8 * tiles + 2 * subgroups) / tileVectors);
  const [columns, rated] = range(2).map((): Ring => {
    if (tile + RING_BINS <= tiles) {
      const first = front + tile * tileVectors + ROW_VECTORS - 1;
      tile += RING_BINS;
      return { first, bin: tileVectors, four: ROW_VECTORS };
    }
    const first = staged;
    staged += RING_BINS * RING_VECTORS;
    return { first, bin: RING_VECTORS, four: 1 };
  });
  return { staged, front, columns, rated, plan: planOf(rank, Math.floor(staged / TILE_VECTORS), subgroups) };
}

/** Template values of the shader parts that sum in 8 bits. */
export function int8Values(
  shape: Int8Shape,
): Readonly<Record<string, unknown>> & { readonly STAGED: number } {
  const { rank, biases } = shape;
  const tiles = tilesOf(rank);
  const ratingRow = hasRatingRow(rank);
  const lanes = lanesOf(shape);
  const tileVectors = tileVectorsOf(lanes);
  const { staged, front, columns, rated, plan } = int8Plan(shape);
  return {
    RANK: rank,
    PADDED: paddedRank(rank),
    TILES: tiles,
    LOWER_TILES: (tiles * (tiles + 1)) / 2,
    SLOT_VECTORS: slotElements(rank, biases) / 4,
    THREADS: plan.subgroups * 32,
    SUBGROUPS: plan.subgroups,
    BIN,
    LANES_PER_GROUP: lanes,
    ROW_VECTORS,
    TILE_VECTORS: tileVectors,
    ROW_PIECES: int8Pieces(rank),
    STAGED: staged,
    FRONT: front,
    COLUMNS: columns.first,
    COLUMNS_BIN: columns.bin,
    COLUMNS_FOUR: columns.four,
    RATED: rated.first,
    RATED_BIN: rated.bin,
    RATED_FOUR: rated.four,
    RATING_ROW: ratingRow,
    BIASES: biases,
    INT8: true,
    HALF_A: false,
    steps: range(BIN / 32),
    accumulators: range(plan.accumulators),
    deals: plan.deals,
    phases: plan.phases,
    tile_numbers: range(tiles),
    other_subgroups: range(plan.subgroups).slice(1),
  };
}

export function int8Workgroup(params: Int8Shape): { readonly threads: number; readonly bytes: number } {
  return { threads: int8Subgroups(params) * 32, bytes: int8Values(params).STAGED * 16 };
}
