/** Position of a 16 x 16 tile in the lower triangle of A; rows and columns are counted in tiles. */
export interface Tile {
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

/** The subgroup of each tile. */
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
