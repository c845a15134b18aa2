import { TILE, tilesOf } from '../device/slots.ts';
import { dealTiles, type Tile } from './tile-partition.ts';

/**
 * The plan by which a workgroup computes A of a row on tensor cores: it assigns the 16 x 16 tiles of A's
 * lower triangle to subgroups, and orders the moves of the sums through workgroup memory to the threads. It
 * is plain data, from which templates unroll loops.
 *
 * The ratings are multiplied as one more column next to the factors, so that the same products also give b.
 * They take a column of the padding of the last tile if at least eight columns are free (`ratingRow` false).
 * Otherwise they get a tile row of their own below A.
 */
export interface TensorPlan {
  /** Tiles of a row of A: the rank divided by 16, rounded up. */
  readonly tiles: number;
  readonly subgroups: number;
  readonly ratingRow: boolean;
  /** Number of threads that together load one row of θ, 16 bytes each. */
  readonly lanesPerRow: number;
  readonly accumulators: number;
  readonly deals: readonly Deal[];
  readonly phases: readonly Phase[];
}

/**
 * The tiles that one subgroup sums, each with the number of its accumulator. `lefts` and `rights`: the tile
 * rows and tile columns that these tiles need as operands.
 */
interface Deal {
  readonly subgroup: number;
  readonly lefts: readonly number[];
  readonly rights: readonly number[];
  readonly tiles: readonly (Tile & { readonly accumulator: number; readonly index: number })[];
}

/**
 * One phase of moving the sums through workgroup memory, which may not hold all tiles at the same time. A
 * phase moves whole tile rows. `stores`: the tiles that each subgroup stores; `place` is the index of a tile,
 * or of a row's first tile, in that memory.
 */
interface Phase {
  readonly stores: readonly {
    readonly subgroup: number;
    readonly tiles: readonly { readonly place: number; readonly accumulator: number }[];
  }[];
  readonly rows: readonly { readonly row: number; readonly place: number }[];
}

/**
 * True if the ratings need a tile row of their own, since fewer than eight columns of the last tile are
 * padding.
 */
export function hasRatingRow(rank: number): boolean {
  return tilesOf(rank) * TILE - rank < 8;
}

/**
 * True if the float16 kernels on tensor cores subtract the mean and the fixed side's biases from the ratings
 * themselves. Otherwise a pass before them does it: if the ratings are in the padding (as at rank 100),
 * reading biases slowed the fused kernel by more than the pass takes.
 */
export function centresRatings({
  rank,
  biases,
}: {
  readonly rank: number;
  readonly biases: boolean;
}): boolean {
  return biases && hasRatingRow(rank);
}

/**
 * Number of subgroups of a workgroup. There are enough threads for one row of A each; up to eight tiles, the
 * number of subgroups is also a power of two.
 */
export function subgroupsFor(rank: number): number {
  const tiles = tilesOf(rank);
  return tiles <= 2 ? 1 : tiles <= 4 ? 2 : tiles <= 8 ? 4 : Math.ceil(tiles / 2);
}

/** Makes the plan. `room`: number of tiles that fit workgroup memory at the same time. */
export function tensorPlan(rank: number, room = tilesOf(rank), subgroups = subgroupsFor(rank)): TensorPlan {
  const tiles = tilesOf(rank);
  const ratingRow = hasRatingRow(rank);
  const all: Tile[] = [];
  for (let row = 0; row < tiles; row++)
    for (let column = 0; column <= row; column++) all.push({ row, column });
  if (ratingRow) for (let column = 0; column < tiles; column++) all.push({ row: tiles, column });
  const deals = dealTiles(all, subgroups).map((own, subgroup): Deal => ({
    subgroup,
    lefts: distinct(own.map(({ row }) => row)),
    rights: distinct(own.map(({ column }) => column)),
    tiles: own.map((tile, accumulator) => ({
      ...tile,
      accumulator,
      index: (tile.row * (tile.row + 1)) / 2 + tile.column,
    })),
  }));
  const chunks = tiles * 2;
  return {
    tiles,
    subgroups,
    ratingRow,
    // Above eight tiles, the number of subgroups may not be a power of two; then all threads together load
    // eight rows of θ at a time.
    lanesPerRow: tiles <= 8 ? 2 ** Math.ceil(Math.log2(chunks)) : 4 * subgroups,
    accumulators: Math.max(...deals.map((deal) => deal.tiles.length)),
    deals,
    phases: phasesOf(tiles, ratingRow, deals, room),
  };
}

/**
 * Divides the tile rows into phases of at most `room` tiles, in ascending order; the tile row of the ratings,
 * if there is one, is in the first phase.
 */
function phasesOf(tiles: number, ratingRow: boolean, deals: readonly Deal[], room: number): Phase[] {
  const groups: number[][] = [];
  let group = ratingRow ? [tiles] : [];
  let held = ratingRow ? tiles : 0;
  for (let row = 0; row < tiles; row++) {
    if (held + row + 1 > room) {
      groups.push(group);
      [group, held] = [[], 0];
    }
    group.push(row);
    held += row + 1;
  }
  groups.push(group);
  return groups.map((rows) => {
    const places = new Map<number, number>();
    let next = 0;
    for (const row of rows) {
      places.set(row, next);
      next += Math.min(row + 1, tiles);
    }
    const stores = deals.map(({ subgroup, tiles: own }) => ({
      subgroup,
      tiles: own
        .filter(({ row }) => places.has(row))
        .map(({ row, column, accumulator }) => ({
          place: (places.get(row) as number) + column,
          accumulator,
        })),
    }));
    return { stores, rows: rows.map((row) => ({ row, place: places.get(row) as number })) };
  });
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
