/** Rows whose ratings are read again in each pass of conjugate gradients: long rows, and groups of tiled ones. */
import type { SolverChoice, Tiling } from '../../operators/tasks/task-types.ts';
import { RowProblem, TileGroup } from '../generated/structs.ts';
import { blockOf, type ScopeOf, type TaskScope, valuesOf } from '../handler.ts';
import { ScratchAddresses, Struct } from '../scratch.ts';
import {
  type ChunkRatings,
  type Priors,
  priorsOf,
  ratingsOf,
  type RowChunk,
  rowChunks,
  workspaceOf,
} from './row-chunks.ts';
import { biasShift, rowShift } from './solvers.ts';

const RESIDUAL = 0;
const PRODUCT = 1;
const CURVATURE = 2;
type Pass = typeof RESIDUAL | typeof PRODUCT | typeof CURVATURE;

/**
 * Solves rows by the steps of cpu/assembly/solve/passes.ts. `problems`: addresses of the rows' RowProblem.
 * Returns, for each row, true if its x is finite. A pass ends early when the task is cancelled.
 */
function solveByPasses(
  { kernels, params }: TaskScope<Pick<SolverChoice, 'cgSteps' | 'settles'>>,
  problems: readonly number[],
  pass: (which: Pass) => void,
): boolean[] {
  const unsettled = (end: (problem: number) => 0 | 1) =>
    problems.map((problem) => end(problem) !== 0).includes(true);
  for (const problem of problems) kernels.startPasses(problem);
  pass(RESIDUAL);
  let goesOn = unsettled(kernels.beginPasses);
  // The last step needs no residual, unless the caller wants to know if the row is settled.
  const full = params.settles ? params.cgSteps : params.cgSteps - 1;
  for (let step = 0; step < full && goesOn; step++) {
    pass(PRODUCT);
    goesOn = unsettled(kernels.stepPasses);
  }
  if (goesOn && full < params.cgSteps) {
    pass(CURVATURE);
    for (const problem of problems) kernels.takeLastPass(problem);
  }
  return problems.map((problem) => kernels.endPasses(problem) !== 0);
}

/** The prior's term of Σ t, the sum of a row's ratings. */
export function priorTotal(problem: Struct<typeof RowProblem>): number {
  return problem.get('ownShift') * problem.get('priorBias');
}

/**
 * Solves a row with more ratings than a chunk holds, without forming its A. Its ratings are copied to scratch
 * piece by piece in each pass. The problem has the row's shift, x, previous x and, with a bias, its address
 * and weight. Returns true if the solution is finite.
 */
export function solveLongRow(
  scope: TaskScope<Pick<SolverChoice, 'cgSteps' | 'settles'>>,
  problem: Struct<typeof RowProblem>,
  { row, size, biased }: { readonly row: number; readonly size: number; readonly biased: boolean },
  ratings: (chunk: RowChunk, onlyWeights?: boolean) => ChunkRatings,
): boolean {
  const { kernels } = scope;
  const { take } = new ScratchAddresses(problem.get('workspace'));
  const vectors = { r: take(size), p: take(size), q: take(size), sums: take(size) };
  const part = take(2 * size);
  problem.set({ ...vectors, products: take(128), spare: take(8 * size) });
  if (!biased) problem.set({ sums: 0 });
  const pass = (which: Pass) => {
    let total = 0;
    for (const chunk of rowChunks(scope, row, row + 1, 0, 0)) {
      const { count, indices } = chunk;
      const { values, weights } = ratings(chunk, which !== RESIDUAL);
      problem.set({ indices, values, weights, count });
      if (biased && which === RESIDUAL) total += kernels.sumOf(values, count);
      kernels.passPiece(problem.address, which, part);
    }
    if (which === RESIDUAL) problem.set({ total: total + priorTotal(problem) });
  };
  return solveByPasses(scope, [problem.address], pass)[0];
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

interface TiledRow {
  readonly row: number;
  readonly n: number;
}

/** Bytes of a list of ratings, see cpu/assembly/solve/tiles.ts. */
const LIST_BYTES = 256;

/** Approximate ratings between two checks for cancellation. */
const TURN_RATINGS = 300_000;

/**
 * Solves those rows in [from, to) that have tiled.from to tiled.to ratings, by conjugate gradients tile by
 * tile, in groups whose ratings fit scratch. A row's solution does not depend on its group.
 */
export function solveTiledRows(scope: ScopeOf<'update'>, tiled: Tiling): SolvedTiles {
  const { from, to, runs = [] } = scope.params;
  const { offsets } = blockOf(scope);
  const solved: SolvedTiles = { rows: 0, ratings: 0, objectives: [0, ...runs.map(() => 0)], badRow: -1 };
  let group = new TiledGroup(scope, tiled);
  for (let row = from; row < to; row++) {
    const n = offsets[row + 1] - offsets[row];
    if (n < tiled.from || n > tiled.to) continue;
    if (!group.add({ row, n })) {
      group.solve(solved);
      group = new TiledGroup(scope, tiled);
      if (!group.add({ row, n })) throw new Error('the scratch memory is too small for a row');
    }
  }
  group.solve(solved);
  return solved;
}

/** Addresses of the parts of a group of rows in scratch, with a vector for each row in x, r, p, q and sums. */
function layoutOf(
  workspace: number,
  { tiles, size, biased }: { readonly tiles: number; readonly size: number; readonly biased: boolean },
  rows: number,
  ratings: number,
) {
  const addresses = new ScratchAddresses(workspace);
  const { take } = addresses;
  return {
    work: take(LIST_BYTES + size),
    x: take(rows * size),
    r: take(rows * size),
    p: take(rows * size),
    q: take(rows * size),
    sums: biased ? take(rows * size) : 0,
    biases: biased ? take(4 * rows) : 0,
    problems: take(rows * RowProblem.bytes),
    group: take(TileGroup.bytes),
    starts: take(4 * rows * (tiles + 1)),
    ratings: take(4 * ratings + 16),
    locals: take(2 * ratings),
    end: addresses.end,
  };
}

/** A group of rows that take their CG steps together, tile by tile. */
class TiledGroup {
  readonly #scope: ScopeOf<'update'>;
  readonly #tileRows: number;
  readonly #shape: { readonly tiles: number; readonly size: number; readonly biased: boolean };
  readonly #rows: TiledRow[] = [];
  readonly #priors: Priors;
  #ratings = 0;

  constructor(scope: ScopeOf<'update'>, { tileRows }: Tiling) {
    const fixed = scope.matrix('fixed');
    this.#scope = scope;
    this.#tileRows = tileRows;
    this.#priors = priorsOf(scope);
    this.#shape = {
      tiles: Math.ceil(fixed.rows / tileRows),
      size: 4 * fixed.stride,
      biased: valuesOf(scope, 'bias') !== undefined,
    };
  }

  /** Returns false if the row does not fit scratch together with the others. */
  add(row: TiledRow): boolean {
    const { address, bytes } = workspaceOf(this.#scope);
    const { end } = layoutOf(address, this.#shape, this.#rows.length + 1, this.#ratings + row.n);
    if (end > address + bytes) return false;
    this.#rows.push(row);
    this.#ratings += row.n;
    return true;
  }

  solve(solved: SolvedTiles): void {
    const scope = this.#scope;
    if (this.#rows.length === 0 || scope.cancelled()) return;
    const { tiles, size } = this.#shape;
    const at = layoutOf(workspaceOf(scope).address, this.#shape, this.#rows.length, this.#ratings);
    const fixed = scope.matrix('fixed');
    const group = new Struct(scope.memory, at.group, TileGroup).set({
      thetaRows: fixed.rows,
      tileRows: this.#tileRows,
      rows: this.#rows.length,
      starts: at.starts,
      locals: at.locals,
      ratings: at.ratings,
      prefetches: this.#ratings >= fixed.rows ? 1 : 0,
      work: at.work,
    });
    new Uint8Array(scope.memory.buffer, at.work + LIST_BYTES, size).fill(0);
    const totals = this.#placeRatings(group.address, at.starts);
    const problems = this.#rows.map((row, g) => this.#problemOf(row, g, totals[g], at));
    const turn = Math.max(1, Math.floor((tiles * TURN_RATINGS) / this.#ratings));
    const finite = solveByPasses(
      scope,
      problems.map(({ address }) => address),
      (which) => {
        for (let from = 0; from < tiles && !scope.cancelled(); from += turn)
          scope.kernels.passTiles(group.address, at.problems, which, from, Math.min(from + turn, tiles));
      },
    );
    this.#end(solved, problems, finite, at);
    solved.rows += this.#rows.length;
    solved.ratings += this.#ratings;
  }

  #problemOf({ row, n }: TiledRow, g: number, total: number, at: ReturnType<typeof layoutOf>) {
    const scope = this.#scope;
    const { size, biased } = this.#shape;
    const own = g * size;
    const ownShift = biasShift(n, scope.params);
    const priorBias = this.#priors.biases?.[row] ?? 0;
    return new Struct(scope.memory, at.problems + g * RowProblem.bytes, RowProblem).clear().set({
      theta: scope.matrix('fixed').pointer,
      size,
      shift: rowShift(n, scope.params),
      x: at.x + own,
      previous: scope.matrix('previous').pointer + row * size,
      prior: this.#priors.of(row),
      r: at.r + own,
      p: at.p + own,
      q: at.q + own,
      ...(biased && {
        sums: at.sums + own,
        bias: at.biases + 4 * g,
        ownShift,
        priorBias,
        weight: n + ownShift,
        total: total + ownShift * priorBias,
      }),
    });
  }

  /** Writes the solutions and biases, and adds each row's objective to the sum of its run. */
  #end(
    solved: SolvedTiles,
    problems: readonly Struct<typeof RowProblem>[],
    finite: readonly boolean[],
    at: ReturnType<typeof layoutOf>,
  ): void {
    const { memory, params } = this.#scope;
    const { runs = [] } = params;
    const output = this.#scope.matrix('factors');
    const bias = valuesOf(this.#scope, 'bias');
    const numbers = new Float32Array(memory.buffer);
    let run = 0;
    this.#rows.forEach(({ row }, g) => {
      if (!finite[g] && solved.badRow < 0) solved.badRow = row;
      const first = at.x / 4 + g * output.stride;
      numbers.copyWithin(output.pointer / 4 + row * output.stride, first, first + output.stride);
      if (bias) bias[row] = numbers[at.biases / 4 + g];
      while (row >= runs[run]) run++;
      solved.objectives[run] += problems[g].get('objective');
    });
  }

  /**
   * Copies the ratings of the group into scratch, sorted by row and within a row by tile. Returns Σ r of each
   * row after the fixed side's biases have been subtracted; 0 without biases.
   */
  #placeRatings(group: number, startsAt: number): number[] {
    const scope = this.#scope;
    const { kernels } = scope;
    const ratings = ratingsOf(scope, scope.params);
    const { tiles, biased } = this.#shape;
    const rows = this.#rows.length;
    const starts = new Int32Array(scope.memory.buffer, startsAt, rows * (tiles + 1));
    let placed = 0;
    return this.#rows.map(({ row }, g) => {
      let [tile, total] = [-1, 0];
      for (const chunk of rowChunks(scope, row, row + 1, 0, 0)) {
        const { values } = ratings(chunk);
        if (biased) total += kernels.sumOf(values, chunk.count);
        tile = kernels.placeRatings(group, g, chunk.indices, values, chunk.count, tile, placed);
        placed += chunk.count;
      }
      while (tile < tiles) starts[++tile * rows + g] = placed;
      return total;
    });
  }
}
