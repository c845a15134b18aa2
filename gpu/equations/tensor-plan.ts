import { TILE, tilesOf } from '../device/slots.ts';
import { dealTiles, type Tile } from './tile-partition.ts';

/**
 * Plan of a workgroup with tensor cores: which subgroup sums which tiles of a row's A, and how the sums are
 * passed to the threads. Plain data, from which templates unroll loops.
 *
 * The ratings are an extra column next to the factors, so that the same products also give b. If at least
 * eight columns of padding are free, the ratings use one of them (`ratingRow` false); else they get one more
 * tile row.
 */
export interface TensorPlan {
  /** Tiles of a row: F / 16. */
  readonly tiles: number;
  readonly subgroups: number;
  readonly ratingRow: boolean;
  /** Lanes that load one row of θ, 16 bytes each. */
  readonly lanesPerRow: number;
  readonly accumulators: number;
  readonly deals: readonly Deal[];
  readonly phases: readonly Phase[];
}

/**
 * The tiles that one subgroup accumulates, each with its accumulator, and the tile rows and columns they
 * that these rows need.
 */
interface Deal {
  readonly subgroup: number;
  readonly lefts: readonly number[];
  readonly rights: readonly number[];
  readonly tiles: readonly (Tile & { readonly accumulator: number; readonly index: number })[];
}

/** Whole tile rows that are in workgroup memory at the same time; `place` is a tile's index there. */
interface Phase {
  readonly stores: readonly {
    readonly subgroup: number;
    readonly tiles: readonly { readonly place: number; readonly accumulator: number }[];
  }[];
  readonly rows: readonly { readonly row: number; readonly place: number }[];
}

/** True when the ratings need an extra tile row, since fewer than eight columns of padding are free. */
export function hasRatingRow(rank: number): boolean {
  return tilesOf(rank) * TILE - rank < 8;
}

/**
 * True if kernels on tensor cores that read float16 subtract the mean and the biases from the ratings
 * themselves; else a pass before them does. If the ratings are in the padding (rank 100), reading biases as
 * well slowed the fused kernel by more than the pass takes.
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
 * Number of subgroups of a workgroup: each thread has a row of A. Above eight tiles, only the number of
 * subgroups that these rows need.
 */
export function subgroupsFor(rank: number): number {
  const tiles = tilesOf(rank);
  return tiles <= 2 ? 1 : tiles <= 4 ? 2 : tiles <= 8 ? 4 : Math.ceil(tiles / 2);
}

/** `room`: tiles that workgroup memory holds. */
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
    // If the number of subgroups is not a power of two, all threads together load eight rows a pass.
    lanesPerRow: tiles <= 8 ? 2 ** Math.ceil(Math.log2(chunks)) : 4 * subgroups,
    accumulators: Math.max(...deals.map((deal) => deal.tiles.length)),
    deals,
    phases: phasesOf(tiles, ratingRow, deals, room),
  };
}

/** Phases of ascending tile rows, each with at most `room` tiles; the ratings' row is first. */
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
