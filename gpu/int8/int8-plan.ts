import { range } from '../webgpu/kernel.ts';
import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { hasRatingRow, type TensorPlan, tensorPlan } from '../equations/tensor-plan.ts';

/** Ratings staged at a time: four for each of sixteen groups of threads. */
const BIN = 64;

/**
 * Groups of 16 bytes between the lines of two features in workgroup memory: an odd number spreads the banks.
 */
const ROW_VECTORS = BIN / 16 + 1;

/** Groups of four numbers of a tile of A in workgroup memory, see normal-equations-tensor. */
const TILE_VECTORS = 80;

/** Least and largest rank that kernels in 8 bits serve: a thread has a rating of a bin, and a row of A. */
export const INT8_RANKS = { least: 33, most: 256 } as const;

/** Ratings of a part at most: so many products of numbers of 8 bits fit 32. */
export const INT8_PART = 2 ** 17;

/** Digits of a rating: 16 bits, of which clamping keeps some beyond this for biases. */
const LARGEST_NUMBER = 8192;

/** The power of two by which ratings are multiplied before they are rounded to whole numbers. */
export function int8Scale(largestRating: number): number {
  return 2 ** Math.floor(Math.log2(LARGEST_NUMBER / Math.max(largestRating, 2 ** -20)));
}

/** Groups of 16 bytes of a row of θ in 8 bits, an even number. */
export function int8Pieces(rank: number): number {
  return 2 * Math.ceil(tilesOf(rank) / 2);
}

/** Bytes of the mirror in 8 bits of a matrix with `rows` rows, and a row of zeros. */
export function int8Bytes(rows: number, rank: number): number {
  return 16 * int8Pieces(rank) * (rows + 1);
}

/**
 * Subgroups of a workgroup: a thread has 16 features of a row of θ, and sixteen rows are loaded at a time.
 */
function int8Subgroups(shape: Int8Shape): number {
  return lanesOf(shape) / 2;
}

/**
 * Largest ranks, from nine tiles on, where a row of θ is loaded by an even number of threads in place of a
 * power of two: workgroups of five or six subgroups in place of eight, without threads that wait for the
 * others. A subgroup then has more tiles of A, whose registers at larger ranks leave room for fewer
 * workgroups (measured on an H200).
 *
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

/** Lanes that store to lines of different tiles meet different banks. */
function tileVectorsOf(lanes: number): number {
  return 16 * ROW_VECTORS + Math.max(1, 8 / lanes);
}

/** Bins of the rings of columns and ratings. */
const RING_BINS = 3;

/** Groups of 16 bytes of a bin of a ring. */
const RING_VECTORS = BIN / 4;

/** The first group of 16 bytes of a ring, and from a bin, and from four ratings, to the next. */
interface Ring {
  readonly first: number;
  readonly bin: number;
  readonly four: number;
}

interface Int8Plan {
  /** Groups of 16 bytes of workgroup memory. */
  readonly staged: number;
  /** The first one of θ's tiles; the lines of the ratings lie in front. */
  readonly front: number;
  readonly columns: Ring;
  readonly rated: Ring;
  readonly plan: TensorPlan;
}

/** `halfA`: see update-tensor; without it for sums and for A in registers. */
export interface Int8Shape {
  readonly rank: number;
  readonly biases: boolean;
  readonly halfA?: boolean;
}

/**
 * Bins whose rows of θ are on their way at a time: two hide more latency, where their registers do not cost a
 * workgroup. Measured on an H200 at ranks 64, 100, 128 and from 136 to 152 with Netflix's shape.
 */
export const BINS_AHEAD = {
  ofSums: (rank: number): 1 | 2 =>
    tilesOf(rank) <= 7 || (tilesOf(rank) === 10 && !hasRatingRow(rank)) ? 2 : 1,
  ofRows: ({ rank, biases }: Int8Shape): 1 | 2 =>
    biases && tilesOf(rank) >= 5 && tilesOf(rank) <= 7 ? 2 : 1,
} as const;

/**
 * The workgroup memory of these kernels, whose size decides how many rows a multiprocessor works on at a
 * time, and the plan by which A leaves the tensor cores through it. Every line of a tile has 16 bytes beside
 * its numbers, which hold a ring where there are three tiles for it, behind those that CG's vectors take;
 * else it lies behind the tiles, as where operands and products of CG take them all.
 *
 */
export function int8Plan(shape: Int8Shape): Int8Plan {
  const { rank, biases, halfA = false } = shape;
  const tiles = tilesOf(rank);
  const subgroups = int8Subgroups(shape);
  const tileVectors = tileVectorsOf(lanesOf(shape));
  // Two digits, and with biases ones.
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

/** Values of the parts that sum in 8 bits. */
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
