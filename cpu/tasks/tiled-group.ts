import type { ScopeOf } from '../handler.ts';
import { biasColumn, subtractFixed } from './biases.ts';
import { rowChunks, rowColumn } from './row-chunks.ts';
import { biasShift, rowShift } from './row-shifts.ts';
import { ScratchAddresses } from '../scratch-addresses.ts';

/** Bytes of a list of ratings, see cpu/assembly/solve/tiled/products.ts. */
const LIST_BYTES = 256;

/** Bytes of a row's state. */
const STATE_BYTES = 48;

/** Approximate ratings between two checks for cancellation. */
const TURN_RATINGS = 300_000;

export interface TiledRow {
  readonly row: number;
  readonly n: number;
}

/** Addresses of a group's parts in scratch; see cpu/assembly/solve/tiled/rows.ts. */
interface Layout {
  /** A list of ratings, and a row of zeros. */
  readonly work: number;
  readonly x: number;
  readonly r: number;
  readonly p: number;
  readonly q: number;
  /** 0 without biases. */
  readonly sums: number;
  readonly states: number;
  readonly starts: number;
  readonly ratings: number;
  readonly locals: number;
  readonly end: number;
}

export function layoutOf(
  workspace: number,
  {
    rows,
    ratings,
    tiles,
    size,
    biased,
  }: {
    readonly rows: number;
    readonly ratings: number;
    readonly tiles: number;
    readonly size: number;
    readonly biased: boolean;
  },
): Layout {
  const addresses = new ScratchAddresses(workspace);
  const { take } = addresses;
  const [work, x, r, p, q] = [
    take(LIST_BYTES + size),
    take(rows * size),
    take(rows * size),
    take(rows * size),
    take(rows * size),
  ];
  return {
    work,
    x,
    r,
    p,
    q,
    sums: biased ? take(rows * size) : 0,
    states: take(rows * STATE_BYTES),
    starts: take(4 * rows * (tiles + 1)),
    ratings: take(4 * ratings + 16),
    locals: take(2 * ratings),
    end: addresses.end,
  };
}

/**
 * The result for rows that were solved tile by tile: the sum of objectives for each run of rows (`runs` of
 * the task), and the first row without a finite solution, or -1.
 */
export interface SolvedTiles {
  rows: number;
  ratings: number;
  readonly objectives: number[];
  badRow: number;
}

interface GroupShape {
  readonly tiles: number;
  readonly tileRows: number;
  readonly size: number;
  readonly ratings: number;
}

/** A group of rows that take their CG steps together, tile by tile (cpu/assembly/solve/tiled/rows.ts). */
export class TiledGroup {
  readonly #scope: ScopeOf<'update'>;
  readonly #group: readonly TiledRow[];
  readonly #at: Layout;
  readonly #shape: GroupShape;
  readonly #shifts: readonly number[];
  readonly #weights: readonly number[];
  readonly #totals: readonly number[];
  readonly #bias: Float32Array | undefined;

  constructor(scope: ScopeOf<'update'>, group: readonly TiledRow[], at: Layout, shape: GroupShape) {
    [this.#scope, this.#group, this.#at, this.#shape] = [scope, group, at, shape];
    this.#shifts = group.map(({ n }) => rowShift(n, scope.params));
    this.#weights = group.map(({ n }) => n + biasShift(n, scope.params));
    this.#totals = placeGroup(scope, group, at, shape);
    this.#bias = biasColumn(scope, 'bias');
  }

  solve(solved: SolvedTiles): void {
    const { x, r, p, q } = this.#at;
    this.#start();
    this.#pass(0, x, r);
    this.#begin();
    for (let step = 1; step < this.#scope.params.cgSteps; step++) {
      this.#pass(1, p, q);
      this.#step();
    }
    this.#pass(2, p, 0);
    this.#end(solved);
    solved.rows += this.#group.length;
    solved.ratings += this.#shape.ratings;
  }

  /**
   * One pass over the ratings of the group, tile by tile. `which`: 0 computes residuals, 1 products, 2
   * curvatures.
   */
  #pass(which: 0 | 1 | 2, p: number, y: number): void {
    const [scope, at] = [this.#scope, this.#at];
    const { tiles, tileRows, size, ratings } = this.#shape;
    const fixed = scope.matrix('fixed');
    const turn = Math.max(1, Math.floor((tiles * TURN_RATINGS) / ratings));
    for (let from = 0; from < tiles && !scope.cancelled(); from += turn) {
      scope.kernels.passTiles(
        fixed.pointer,
        size,
        fixed.rows,
        tileRows,
        from,
        Math.min(from + turn, tiles),
        this.#group.length,
        at.starts,
        at.locals,
        at.ratings,
        which,
        ratings >= fixed.rows ? 1 : 0,
        p,
        y,
        at.sums,
        at.states,
        at.work,
      );
    }
  }

  /** Copies the rows' last solutions, from which they start. */
  #start(): void {
    const { kernels, memory: shared } = this.#scope;
    const { size } = this.#shape;
    const memory = new Float32Array(shared.buffer);
    const previous = this.#scope.matrix('previous');
    const zeros = (this.#at.work + LIST_BYTES) / 4;
    memory.fill(0, zeros, zeros + size / 4);
    this.#group.forEach(({ row }, g) => {
      const { x, r, sums, state } = this.#addresses(g);
      const start = previous.pointer / 4 + row * previous.stride;
      memory.copyWithin(x / 4, start, start + size / 4);
      kernels.startTiledRow(size, this.#shifts[g], x, r, sums, state);
    });
  }

  #begin(): void {
    this.#group.forEach((_, g) => {
      const { x, r, p, q, sums, state } = this.#addresses(g);
      this.#scope.kernels.beginTiledRow(
        this.#shape.size,
        this.#shifts[g],
        sums,
        this.#weights[g],
        this.#totals[g],
        x,
        r,
        p,
        q,
        state,
      );
    });
  }

  #step(): void {
    this.#group.forEach((_, g) => {
      const { x, r, p, q, sums, state } = this.#addresses(g);
      const [shift, weight] = [this.#shifts[g], this.#weights[g]];
      this.#scope.kernels.stepTiledRow(this.#shape.size, shift, sums, weight, x, r, p, q, state);
    });
  }

  /** Writes the solutions, and adds each row's objective to the sum of its run. */
  #end(solved: SolvedTiles): void {
    const { memory, params } = this.#scope;
    const { runs = [] } = params;
    const output = this.#scope.matrix('factors');
    const { size } = this.#shape;
    const numbers = new Float32Array(memory.buffer);
    let run = 0;
    this.#group.forEach(({ row }, g) => {
      const { x, state } = this.#addresses(g);
      if (!this.#endRow(row, g) && solved.badRow < 0) solved.badRow = row;
      numbers.copyWithin(output.pointer / 4 + row * output.stride, x / 4, (x + size) / 4);
      while (row >= runs[run]) run++;
      solved.objectives[run] += new Float64Array(memory.buffer, state, 1)[0];
    });
  }

  /** Takes the row's last step and writes its bias. Returns false if the solution is not finite. */
  #endRow(row: number, g: number): boolean {
    const own = rowColumn(this.#scope, 0);
    const { x, p, sums, state } = this.#addresses(g);
    const finite = this.#scope.kernels.endTiledRow(
      this.#shape.size,
      this.#shifts[g],
      sums,
      this.#weights[g],
      this.#totals[g],
      this.#bias ? own.address : 0,
      x,
      p,
      state,
    );
    if (this.#bias) this.#bias[row] = own.values[0];
    return Boolean(finite);
  }

  /** Addresses of a row's parts. */
  #addresses(g: number) {
    const { x, r, p, q, sums, states } = this.#at;
    const own = g * this.#shape.size;
    return {
      x: x + own,
      r: r + own,
      p: p + own,
      q: q + own,
      sums: sums === 0 ? 0 : sums + own,
      state: states + g * STATE_BYTES,
    };
  }
}

/**
 * Copies the ratings of a group into scratch, sorted by row and within a row by tile. Returns Σ r of each row
 * after the fixed side's biases have been subtracted; 0 without biases.
 */
function placeGroup(
  scope: ScopeOf<'update'>,
  group: readonly TiledRow[],
  at: Layout,
  { tiles, tileRows }: Pick<GroupShape, 'tiles' | 'tileRows'>,
): number[] {
  const { kernels } = scope;
  const block = scope.partition('block');
  const fixedBias = biasColumn(scope, 'fixedBias');
  const starts = new Int32Array(scope.memory.buffer, at.starts, group.length * (tiles + 1));
  let placed = 0;
  return group.map(({ row }, g) => {
    let [tile, total] = [-1, 0];
    for (const chunk of rowChunks(scope, block, row, row + 1, 0, 0)) {
      if (fixedBias) {
        subtractFixed(scope, chunk, scope.params.mean ?? 0, fixedBias);
        total += kernels.sumOf(chunk.values, chunk.count);
      }
      tile = kernels.placeRatings(
        chunk.indices,
        chunk.values,
        chunk.count,
        tileRows,
        tile,
        at.starts + 4 * g,
        4 * group.length,
        placed,
        at.locals,
        at.ratings,
      );
      placed += chunk.count;
    }
    while (tile < tiles) starts[++tile * group.length + g] = placed;
    return total;
  });
}
