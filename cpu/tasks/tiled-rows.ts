import type { ScopeOf } from '../handler.ts';
import { biasColumn, subtractFixed } from './biases.ts';
import { rowChunks, rowColumn, WORKSPACE_BYTES, workspaceOf } from './row-chunks.ts';
import { biasShift, rowShift } from './row-shifts.ts';

/** Bytes of a list of ratings, see cpu/assembly/solve/tiled/products.ts. */
const LIST_BYTES = 256;

/** Bytes of a row's state. */
const STATE_BYTES = 48;

/** Ratings that are taken between two looks at whether the task is cancelled, about. */
const TURN_RATINGS = 300_000;

interface TiledRow {
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

function layoutOf(
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
  let next = workspace;
  const take = (bytes: number) => {
    const at = next;
    next += Math.ceil(bytes / 64) * 64;
    return at;
  };
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
    end: next,
  };
}

/**
 * What rows that were solved tile by tile leave: the objective of each run of rows, and the first without a
 * finite solution, or -1.
 */
export interface SolvedTiles {
  rows: number;
  ratings: number;
  readonly objectives: number[];
  badRow: number;
}

/**
 * Solves those of the rows [from, to) whose numbers of ratings are in the tiling by conjugate gradients tile
 * by tile, in groups whose ratings lie in scratch. A row's solution does not depend on its group.
 *
 */
export function solveTiledRows(
  scope: ScopeOf<'update'>,
  tiled: NonNullable<ScopeOf<'update'>['params']['tiled']>,
): SolvedTiles {
  const { from, to, runs = [] } = scope.params;
  const offsets = scope.partition('block').columns.offsets as Int32Array;
  const fixed = scope.matrix('fixed');
  const shape = {
    tiles: Math.ceil(fixed.rows / tiled.tileRows),
    size: fixed.stride * 4,
    biased: biasColumn(scope, 'bias') !== undefined,
  };
  const solved: SolvedTiles = { rows: 0, ratings: 0, objectives: [0, ...runs.map(() => 0)], badRow: -1 };
  const limit = workspaceOf(scope) + WORKSPACE_BYTES;
  let group: TiledRow[] = [];
  let ratings = 0;
  const solve = () => {
    const layout = layoutOf(workspaceOf(scope), { ...shape, rows: group.length, ratings });
    if (layout.end > limit) throw new Error('the scratch memory is too small for a row');
    if (group.length > 0 && !scope.cancelled())
      solveGroup(scope, group, layout, { ...shape, tileRows: tiled.tileRows, ratings }, solved);
    [group, ratings] = [[], 0];
  };
  for (let row = from; row < to; row++) {
    const n = offsets[row + 1] - offsets[row];
    if (n < tiled.from || n > tiled.to) continue;
    if (
      group.length > 0 &&
      layoutOf(workspaceOf(scope), { ...shape, rows: group.length + 1, ratings: ratings + n }).end > limit
    )
      solve();
    group.push({ row, n });
    ratings += n;
  }
  solve();
  return solved;
}

interface GroupShape {
  readonly tiles: number;
  readonly tileRows: number;
  readonly size: number;
  readonly ratings: number;
}

/** Solves the rows of one group. */
function solveGroup(
  scope: ScopeOf<'update'>,
  group: readonly TiledRow[],
  at: Layout,
  { tiles, tileRows, size, ratings }: GroupShape,
  solved: SolvedTiles,
): void {
  const { kernels, params } = scope;
  const [fixed, previous, output] = [
    scope.matrix('fixed'),
    scope.matrix('previous'),
    scope.matrix('factors'),
  ];
  const bias = biasColumn(scope, 'bias');
  const memory = new Float32Array(scope.memory.buffer);
  const totals = placeGroup(scope, group, at, { tiles, tileRows });
  const address = (part: number, g: number) => (part === 0 ? 0 : part + g * size);
  const state = (g: number) => at.states + g * STATE_BYTES;
  const shifts = group.map(({ n }) => rowShift(n, params));
  const weights = group.map(({ n }) => n + biasShift(n, params));
  const pass = (which: 0 | 1 | 2, p: number, y: number) => {
    const turn = Math.max(1, Math.floor((tiles * TURN_RATINGS) / ratings));
    for (let from = 0; from < tiles && !scope.cancelled(); from += turn) {
      kernels.passTiles(
        fixed.pointer,
        size,
        fixed.rows,
        tileRows,
        from,
        Math.min(from + turn, tiles),
        group.length,
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
  };
  memory.fill(0, (at.work + LIST_BYTES) / 4, (at.work + LIST_BYTES + size) / 4);
  group.forEach(({ row }, g) => {
    const start = previous.pointer / 4 + row * previous.stride;
    memory.copyWithin(address(at.x, g) / 4, start, start + size / 4);
    kernels.startTiledRow(size, shifts[g], address(at.x, g), address(at.r, g), address(at.sums, g), state(g));
  });
  pass(0, at.x, at.r);
  group.forEach((_, g) =>
    kernels.beginTiledRow(
      size,
      shifts[g],
      address(at.sums, g),
      weights[g],
      totals[g],
      address(at.x, g),
      address(at.r, g),
      address(at.p, g),
      address(at.q, g),
      state(g),
    ),
  );
  for (let step = 1; step < params.cgSteps; step++) {
    pass(1, at.p, at.q);
    group.forEach((_, g) =>
      kernels.stepTiledRow(
        size,
        shifts[g],
        address(at.sums, g),
        weights[g],
        address(at.x, g),
        address(at.r, g),
        address(at.p, g),
        address(at.q, g),
        state(g),
      ),
    );
  }
  pass(2, at.p, 0);
  const own = rowColumn(scope, 0);
  const { runs = [] } = params;
  let run = 0;
  group.forEach(({ row }, g) => {
    const finite = kernels.endTiledRow(
      size,
      shifts[g],
      address(at.sums, g),
      weights[g],
      totals[g],
      bias ? own.address : 0,
      address(at.x, g),
      address(at.p, g),
      state(g),
    );
    if (!finite && solved.badRow < 0) solved.badRow = row;
    if (bias) bias[row] = own.values[0];
    memory.copyWithin(
      output.pointer / 4 + row * output.stride,
      address(at.x, g) / 4,
      (address(at.x, g) + size) / 4,
    );
    while (row >= runs[run]) run++;
    solved.objectives[run] += new Float64Array(scope.memory.buffer, state(g), 1)[0];
  });
  solved.rows += group.length;
  solved.ratings += ratings;
}

/**
 * Brings the ratings of a group to its place in scratch, sorted by row and so by tile. Gives Σ r of each row,
 * of those for which the fixed side's biases leave; 0 without biases.
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
