import { TILE, tilesOf } from '../device/slots.ts';

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
 * The tiles of A that one subgroup sums, each with the number of its accumulator (a register of the tensor
 * cores). `lefts` and `rights`: the tile rows and tile columns of θ that it multiplies for these tiles.
 */
interface Deal {
  readonly subgroup: number;
  readonly lefts: readonly number[];
  readonly rights: readonly number[];
  readonly tiles: readonly (Tile & { readonly accumulator: number; readonly index: number })[];
}

/**
 * The sums of A are moved from the tensor cores to the threads through workgroup memory, which may not hold
 * all tiles at the same time. This is one phase of the move, for some whole tile rows. `stores`: the tiles
 * that each subgroup stores; `place` is the index of a tile, or of a row's first tile, in that memory.
 */
interface Phase {
  readonly stores: readonly {
    readonly subgroup: number;
    readonly tiles: readonly { readonly place: number; readonly accumulator: number }[];
  }[];
  readonly rows: readonly { readonly row: number; readonly place: number }[];
}

/**
 * The ratings are multiplied as one more column next to the factors. Returns true if they need a tile row of
 * their own in A, since the last tile has fewer than eight columns of padding.
 */
export function hasRatingRow(rank: number): boolean {
  return tilesOf(rank) * TILE - rank < 8;
}

/**
 * True if the float16 kernels on tensor cores subtract the mean and the fixed side's biases from the ratings
 * themselves. If false, a separate pass before them does it. That is faster if the ratings use the padding of
 * the last tile (as at rank 100): reading biases slowed the fused kernel by more than the pass takes.
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
 * Number of subgroups of a workgroup: enough for one thread for each row of A. Up to eight tiles, it is
 * rounded up to a power of two.
 */
export function subgroupsFor(rank: number): number {
  const tiles = tilesOf(rank);
  return tiles <= 2 ? 1 : tiles <= 4 ? 2 : tiles <= 8 ? 4 : Math.ceil(tiles / 2);
}

/**
 * Makes the plan. `room`: number of tiles that fit workgroup memory at the same time, for the move from the
 * tensor cores to the threads.
 */
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
    // Up to eight tiles, a power of two, one thread for each 16 bytes of a row or more. Above eight tiles,
    // the number of threads may not be a power of two; then all of them together load eight rows of θ at a
    // time.
    lanesPerRow: tiles <= 8 ? 2 ** Math.ceil(Math.log2(chunks)) : 4 * subgroups,
    accumulators: Math.max(...deals.map((deal) => deal.tiles.length)),
    deals,
    phases: phasesOf(tiles, ratingRow, deals, room),
  };
}

/**
 * Divides the move of tiles through workgroup memory into phases of whole tile rows, at most `room` tiles
 * each. Rows are in ascending order, but the tile row of the ratings, if there is one, is first.
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

/** Position of a 16 x 16 tile in the lower triangle of A; rows and columns are counted in tiles. */
interface Tile {
  readonly row: number;
  readonly column: number;
}

const dealt = new Map<string, readonly (readonly Tile[])[]>();

/**
 * Divides the tiles of A among subgroups, the same number to each if possible. To multiply its tiles, a
 * subgroup loads each tile row and tile column of the operands that it needs once; the division keeps these
 * loads few. It is found by simulated annealing with a fixed seed, so the result is always the same. It is
 * cached in the thread.
 */
export function dealTiles(tiles: readonly Tile[], subgroups: number): readonly (readonly Tile[])[] {
  const key = `${subgroups} ${tiles.map(({ row, column }) => `${row},${column}`).join(' ')}`;
  let deal = dealt.get(key);
  if (deal === undefined) {
    const owner = bestOwners(tiles, subgroups);
    dealt.set(
      key,
      (deal = Array.from({ length: subgroups }, (_, subgroup) =>
        tiles.filter((_tile, at) => owner[at] === subgroup),
      )),
    );
  }
  return deal;
}

function bestOwners(tiles: readonly Tile[], subgroups: number): Uint8Array {
  const share = Math.ceil(tiles.length / subgroups);
  const first = Uint8Array.from(tiles, (_, at) => Math.floor(at / share));
  if (subgroups === 1) return first;
  const random = linearCongruential(7);
  let best = first;
  let bestCost = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 6; attempt++) {
    const owner = first.slice();
    const loads = new Loads(tiles, owner, subgroups);
    let cost = loads.cost();
    if (cost < bestCost) [best, bestCost] = [owner.slice(), cost];
    let temperature = 1.5;
    for (let step = 0; step < 5000; step++) {
      const a = Math.floor(random() * tiles.length);
      const b = Math.floor(random() * tiles.length);
      if (owner[a] === owner[b]) continue;
      loads.swap(a, b);
      const changed = loads.cost();
      if (changed <= cost || random() < Math.exp((cost - changed) / temperature)) cost = changed;
      else loads.swap(a, b);
      temperature *= 0.9993;
      if (cost < bestCost) [best, bestCost] = [owner.slice(), cost];
    }
  }
  return best;
}

/**
 * Counts the tile rows and columns that each subgroup must load to multiply its tiles. The counts are updated
 * when two tiles are swapped.
 */
class Loads {
  readonly #tiles: readonly Tile[];
  readonly #owner: Uint8Array;
  readonly #side: number;
  /**
   * Number of tiles that a subgroup has in a tile row, or in a tile column. Index: subgroup * side + row, or
   * subgroup * side + column.
   */
  readonly #rows: Uint16Array;
  readonly #columns: Uint16Array;
  /** For each subgroup, the number of tile rows and columns that it loads. */
  readonly #loads: Uint16Array;

  /** Keeps `owner` and updates it on swaps. */
  constructor(tiles: readonly Tile[], owner: Uint8Array, subgroups: number) {
    this.#tiles = tiles;
    this.#owner = owner;
    this.#side = 1 + tiles.reduce((most, { row, column }) => Math.max(most, row, column), 0);
    this.#rows = new Uint16Array(subgroups * this.#side);
    this.#columns = new Uint16Array(subgroups * this.#side);
    this.#loads = new Uint16Array(subgroups);
    for (let at = 0; at < tiles.length; at++) this.#add(at, owner[at]);
  }

  swap(a: number, b: number): void {
    const [ofA, ofB] = [this.#owner[a], this.#owner[b]];
    this.#remove(a, ofA);
    this.#remove(b, ofB);
    this.#add(a, ofB);
    this.#add(b, ofA);
    this.#owner[a] = ofB;
    this.#owner[b] = ofA;
  }

  /** The cost to minimize: the loads of all subgroups, plus half the loads of the subgroup with the most. */
  cost(): number {
    let sum = 0;
    let most = 0;
    for (let subgroup = 0; subgroup < this.#loads.length; subgroup++) {
      const loads = this.#loads[subgroup];
      sum += loads;
      if (loads > most) most = loads;
    }
    return sum + most / 2;
  }

  #add(tile: number, subgroup: number): void {
    const { row, column } = this.#tiles[tile];
    if (this.#rows[subgroup * this.#side + row]++ === 0) this.#loads[subgroup]++;
    if (this.#columns[subgroup * this.#side + column]++ === 0) this.#loads[subgroup]++;
  }

  #remove(tile: number, subgroup: number): void {
    const { row, column } = this.#tiles[tile];
    if (--this.#rows[subgroup * this.#side + row] === 0) this.#loads[subgroup]--;
    if (--this.#columns[subgroup * this.#side + column] === 0) this.#loads[subgroup]--;
  }
}

function linearCongruential(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  };
}
