import type { RowRange } from '../../engine/plan/stages.ts';
import type { MatrixView, ScopeOf, TaskHandler } from '../handler.ts';
import { biasColumn, subtractFixed } from './biases.ts';
import { solveLongRow } from './long-row.ts';
import {
  isFar,
  lastObjective,
  type RowChunk,
  rowChunks,
  rowColumn,
  runningSum,
  WORKSPACE_BYTES,
  workspaceOf,
} from './row-chunks.ts';
import { biasShift, rowShift } from './row-shifts.ts';
import { costsOf, exactSolverOf, formsLongRows, methodOf, requireSolvable } from './solvers.ts';
import type { SolvedTiles } from './tiled-group.ts';
import { solveTiledRows } from './tiled-rows.ts';

/**
 * See `update` of KernelTasks. A row that is longer than a chunk and not solved tile by tile is read piece by
 * piece: in each step of CG, or once if it is solved from a formed A.
 */
export const update: TaskHandler<'update'> = (scope) => {
  const { tiled, only } = scope.params;
  const solved: SolvedTiles =
    tiled && only !== 'others'
      ? solveTiledRows(scope, tiled)
      : { rows: 0, ratings: 0, objectives: [0], badRow: -1 };
  const update = new RowUpdate(scope, solved);
  for (const { from, to } of otherRuns(scope)) update.run(from, to);
  const { rows, bytesUp, badRow, objective } = update;
  const objectives = only === 'tiled' ? { objectives: solved.objectives } : { objective };
  return { rows, bytesUp, values: { badRow, ...objectives } };
};

/**
 * Solves rows chunk by chunk. The ratings of a row that is longer than a chunk are summed over several
 * chunks.
 */
class RowUpdate {
  rows: number;
  bytesUp: number;
  badRow: number;
  readonly #scope: ScopeOf<'update'>;
  readonly #offsets: Int32Array;
  readonly #theta: MatrixView;
  readonly #output: MatrixView;
  readonly #previous: MatrixView;
  readonly #fixedBias: Float32Array | undefined;
  readonly #bias: Float32Array | undefined;
  readonly #workspace: number;
  /** For a chunk's rows: shifts of A's diagonal, shifts of the biases, and the biases. */
  readonly #columns: Readonly<Record<'shifts' | 'ownShifts' | 'biases', ReturnType<typeof rowColumn>>>;
  readonly #objective: ReturnType<typeof runningSum>;
  /** Ratings of a long row so far, and their sum. */
  #length = 0;
  #total = 0;

  constructor(scope: ScopeOf<'update'>, solved: SolvedTiles) {
    this.#scope = scope;
    requireSolvable(scope, scope.matrix('factors'), scope.params);
    this.#offsets = scope.partition('block').columns.offsets as Int32Array;
    [this.#theta, this.#output, this.#previous] = (['fixed', 'factors', 'previous'] as const).map((name) =>
      scope.matrix(name),
    );
    [this.#fixedBias, this.#bias] = ['fixedBias', 'bias'].map((name) => biasColumn(scope, name));
    this.#workspace = workspaceOf(scope);
    const [shifts, ownShifts, biases] = ([0, 1, 2] as const).map((which) => rowColumn(scope, which));
    this.#columns = { shifts, ownShifts, biases };
    this.#objective = runningSum(scope);
    this.#objective.view[0] = solved.objectives[0];
    [this.rows, this.badRow] = [solved.rows, solved.badRow];
    this.bytesUp = 8 * solved.ratings + 4 * solved.rows;
  }

  get objective(): number {
    return this.#objective.view[0];
  }

  /** Solves the rows [from, to). */
  run(from: number, to: number): void {
    const scope = this.#scope;
    const { perRating, perRow } = costsOf(scope, this.#output, scope.params);
    for (const chunk of rowChunks(scope, scope.partition('block'), from, to, perRating, perRow)) {
      this.bytesUp += 8 * chunk.count + 4 * chunk.rows;
      if (this.#fixedBias) subtractFixed(scope, chunk, scope.params.mean ?? 0, this.#fixedBias);
      this.#placeShifts(chunk);
      const bad = chunk.starts && chunk.ends ? this.#solveRows(chunk) : this.#solvePiece(chunk);
      if (bad >= 0) this.badRow = this.badRow < 0 ? chunk.row + bad : Math.min(this.badRow, chunk.row + bad);
      if (!chunk.ends) continue;
      this.rows += chunk.rows;
      this.#bias?.set(this.#columns.biases.values.subarray(0, chunk.rows), chunk.row);
    }
  }

  #placeShifts({ row, rows }: RowChunk): void {
    const { shifts, ownShifts } = this.#columns;
    const { params } = this.#scope;
    for (let r = 0; r < rows; r++) {
      const n = this.#offsets[row + r + 1] - this.#offsets[row + r];
      shifts.values[r] = rowShift(n, params);
      if (this.#bias) ownShifts.values[r] = biasShift(n, params);
    }
  }

  /**
   * Solves the whole rows of a chunk. Returns the first row of the chunk whose solution is not finite, or -1.
   */
  #solveRows(chunk: RowChunk): number {
    const { kernels, params } = this.#scope;
    const { shifts, ownShifts, biases } = this.#columns;
    const size = this.#output.stride * 4;
    const [ownAt, biasAt] = this.#bias ? [ownShifts.address, biases.address] : [0, 0];
    return kernels.updateRows(
      this.#theta.pointer,
      size,
      params.rank,
      chunk.offsets,
      chunk.indices,
      chunk.values,
      chunk.rows,
      shifts.address,
      ownAt,
      biasAt,
      this.#output.pointer + chunk.row * size,
      this.#previous.pointer + chunk.row * size,
      params.cgBelow,
      params.cgSteps,
      params.settles ? 1 : 0,
      exactSolverOf(params).method,
      this.#workspace,
      WORKSPACE_BYTES,
      this.#objective.address,
      isFar(this.#theta),
    );
  }

  /** Solves a long row at its first piece, or adds the piece to A. */
  #solvePiece(chunk: RowChunk): number {
    const n = this.#offsets[chunk.row + 1] - this.#offsets[chunk.row];
    if (formsLongRows(this.#scope, this.#output, n, this.#scope.params)) return this.#addPiece(chunk);
    return chunk.starts && !this.#solveLongRow(chunk.row, n) ? 0 : -1;
  }

  #solveLongRow(row: number, n: number): boolean {
    const scope = this.#scope;
    const { shifts, ownShifts, biases } = this.#columns;
    const { solved, objective } = solveLongRow(scope, {
      row,
      choice: scope.params,
      fixed: this.#theta,
      output: this.#output,
      previous: this.#previous,
      gram: 0,
      anchored: false,
      shift: shifts.values[0],
      weight: this.#bias ? n + ownShifts.values[0] : 0,
      bias: biases.address,
      workspace: this.#workspace,
      place: (chunk, first) => {
        if (first && this.#fixedBias) subtractFixed(scope, chunk, scope.params.mean ?? 0, this.#fixedBias);
        return { values: chunk.values, weights: 0 };
      },
    });
    this.#objective.view[0] += objective;
    return solved;
  }

  /**
   * Adds a piece of a long row to its A, and after the last piece solves the row. Returns 0 if the solution
   * is not finite, else -1.
   */
  #addPiece({ row, starts, ends, count, indices, values }: RowChunk): number {
    const { kernels } = this.#scope;
    const biased = this.#bias ? 1 : 0;
    if (starts) [this.#length, this.#total] = [0, 0];
    this.#length += count;
    this.#total += biased ? kernels.sumOf(values, count) : 0;
    const size = this.#output.stride * 4;
    const more = starts ? 0 : 1;
    kernels.accumulateRow(this.#theta.pointer, size, indices, values, count, biased, more, this.#workspace);
    return ends && !this.#solveSums(row, size) ? 0 : -1;
  }

  #solveSums(row: number, size: number): boolean {
    const { kernels, params } = this.#scope;
    const { shifts, ownShifts, biases } = this.#columns;
    const solved = kernels.solveAccumulated(
      size,
      params.rank,
      shifts.values[0],
      this.#bias ? this.#length + ownShifts.values[0] : 0,
      this.#total,
      this.#bias ? biases.address : 0,
      this.#output.pointer + row * size,
      this.#previous.pointer + row * size,
      methodOf(this.#length, params),
      params.cgSteps,
      this.#workspace,
    );
    this.#objective.view[0] += lastObjective(this.#scope, this.#workspace, size);
    return Boolean(solved);
  }
}

/** The runs of rows that are not solved tile by tile. */
function* otherRuns({ params, partition }: ScopeOf<'update'>): Generator<RowRange> {
  const { from, to, tiled, only } = params;
  if (only === 'tiled') return;
  if (tiled === undefined) return yield { from, to };
  const offsets = partition('block').columns.offsets as Int32Array;
  const isOther = (row: number) => {
    const n = offsets[row + 1] - offsets[row];
    return n < tiled.from || n > tiled.to;
  };
  for (let row = from; row < to;) {
    const first = row;
    while (row < to && isOther(row)) row++;
    if (row > first) yield { from: first, to: row };
    while (row < to && !isOther(row)) row++;
  }
}
