/** Position of a tile of the lower triangle, in tiles. */
export interface Tile {
  readonly row: number;
  readonly column: number;
}

/**
 * Deals tiles to subgroups, equally many each, so that together they load few tile rows and columns: a subgroup loads each of its
 * tile rows and columns once for all its tiles. Simulated annealing with a fixed seed gives the same result every time.
 */
export function dealTiles(tiles: readonly Tile[], subgroups: number): Tile[][] {
  const share = Math.ceil(tiles.length / subgroups);
  const steps = subgroups > 1 ? 5000 : 0;
  const random = linearCongruential(7);
  let best: number[] = [];
  let bestCost = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 6; attempt++) {
    const owner = tiles.map((_, at) => Math.floor(at / share));
    let cost = loadCost(tiles, owner, subgroups);
    if (cost < bestCost) [best, bestCost] = [owner.slice(), cost];
    let temperature = 1.5;
    for (let step = 0; step < steps; step++) {
      const [a, b] = [Math.floor(random() * tiles.length), Math.floor(random() * tiles.length)];
      if (owner[a] === owner[b]) continue;
      [owner[a], owner[b]] = [owner[b], owner[a]];
      const changed = loadCost(tiles, owner, subgroups);
      if (changed <= cost || random() < Math.exp((cost - changed) / temperature)) cost = changed;
      else [owner[a], owner[b]] = [owner[b], owner[a]];
      temperature *= 0.9993;
      if (cost < bestCost) [best, bestCost] = [owner.slice(), cost];
    }
  }
  return Array.from({ length: subgroups }, (_, subgroup) => tiles.filter((_tile, at) => best[at] === subgroup));
}

/** Loads of all subgroups, plus half of the busiest one's. */
function loadCost(tiles: readonly Tile[], owner: readonly number[], subgroups: number): number {
  let [sum, most] = [0, 0];
  for (let subgroup = 0; subgroup < subgroups; subgroup++) {
    let [rows, columns] = [0, 0];
    tiles.forEach(({ row, column }, at) => {
      if (owner[at] !== subgroup) return;
      rows |= 1 << row;
      columns |= 1 << column;
    });
    const loads = bits(rows) + bits(columns);
    sum += loads;
    most = Math.max(most, loads);
  }
  return sum + most / 2;
}

function bits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

function linearCongruential(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  };
}
