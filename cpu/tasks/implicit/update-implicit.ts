import type { MatrixView, ScopeOf, TaskHandler } from '../../handler.ts';
import { solveLongRow } from '../long-row.ts';
import { costsOf, exactSolverOf, formsLongRows, methodOf, requireSolvable } from '../solvers.ts';
import { isFar, lastObjective, type RowChunk, rowChunks, runningSum } from '../row-chunks.ts';
import { weighedChunk, WORKSPACE_BYTES, workspaceOf } from './weighed-chunk.ts';

/**
 * See `update-implicit` of KernelTasks. A row that is longer than a chunk is read piece by piece: in each
 * step of CG, or once if it is solved from a formed A.
 */
export const updateImplicit: TaskHandler<'update-implicit'> = (scope) => {
  const { from, to } = scope.params;
  const update = new ImplicitUpdate(scope);
  const { perRating, perRow } = costsOf(scope, scope.matrix('factors'), scope.params, true);
  let badRow = -1;
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, scope.partition('block'), from, to, perRating, perRow)) {
    bytesUp += 8 * chunk.count + 8 * chunk.rows;
    const bad = chunk.starts && chunk.ends ? update.solveRows(chunk) : update.solvePiece(chunk);
    if (bad >= 0 && badRow < 0) badRow = chunk.row + bad;
  }
  return { rows: to - from, bytesUp, values: { badRow, objective: update.objective } };
};

/** Solves rows chunk by chunk. Its methods return the chunk's first row without a finite solution, or -1. */
class ImplicitUpdate {
  readonly #scope: ScopeOf<'update-implicit'>;
  readonly #shifts: Float32Array;
  readonly #fixed: MatrixView;
  readonly #gram: number;
  readonly #output: MatrixView;
  readonly #previous: MatrixView;
  readonly #workspace: number;
  readonly #objective: ReturnType<typeof runningSum>;

  constructor(scope: ScopeOf<'update-implicit'>) {
    this.#scope = scope;
    this.#shifts = scope.partition('shifts').columns.values as Float32Array;
    [this.#fixed, this.#output, this.#previous] = (['fixed', 'factors', 'previous'] as const).map((name) =>
      scope.matrix(name),
    );
    this.#gram = scope.matrix('gram').pointer;
    this.#workspace = workspaceOf(scope);
    this.#objective = runningSum(scope);
    requireSolvable(scope, this.#output, scope.params);
  }

  get objective(): number {
    return this.#objective.view[0];
  }

  get #size(): number {
    return this.#output.stride * 4;
  }

  solveRows(chunk: RowChunk): number {
    const { kernels, params } = this.#scope;
    const { row, rows, offsets, indices } = chunk;
    const { targets, weights, shiftsAt } = weighedChunk(this.#scope, params, chunk, this.#shifts);
    return kernels.updateRowsImplicit(
      this.#fixed.pointer,
      this.#size,
      params.rank,
      this.#gram,
      offsets,
      indices,
      targets,
      weights,
      rows,
      shiftsAt,
      this.#output.pointer + row * this.#size,
      this.#previous.pointer + row * this.#size,
      params.cgBelow,
      params.cgSteps,
      params.settles ? 1 : 0,
      exactSolverOf(params).method,
      params.anchored ? 1 : 0,
      this.#workspace,
      WORKSPACE_BYTES,
      this.#objective.address,
      isFar(this.#fixed),
    );
  }

  /** Solves a long row at its first piece, or adds the piece to A and solves the row after the last piece. */
  solvePiece(chunk: RowChunk): number {
    const [scope, { row, starts }] = [this.#scope, chunk];
    const offsets = scope.partition('block').columns.offsets as Int32Array;
    const n = offsets[row + 1] - offsets[row];
    if (formsLongRows(scope, this.#output, n, scope.params)) return this.#addPiece(chunk, n);
    return starts && !this.#solveLongRow(row) ? 0 : -1;
  }

  #solveLongRow(row: number): boolean {
    const scope = this.#scope;
    const { solved, objective } = solveLongRow(scope, {
      row,
      choice: scope.params,
      fixed: this.#fixed,
      output: this.#output,
      previous: this.#previous,
      gram: this.#gram,
      anchored: scope.params.anchored ?? false,
      shift: this.#shifts[row],
      weight: 0,
      bias: 0,
      workspace: this.#workspace,
      place: (chunk) => {
        const { targets, weights } = weighedChunk(scope, scope.params, chunk);
        return { values: targets, weights };
      },
    });
    this.#objective.view[0] += objective;
    return solved;
  }

  #addPiece(chunk: RowChunk, n: number): number {
    const [scope, { row, starts, ends, indices, count }] = [this.#scope, chunk];
    const { targets, weights } = weighedChunk(scope, scope.params, chunk);
    scope.kernels.accumulateImplicit(
      this.#fixed.pointer,
      this.#size,
      indices,
      targets,
      weights,
      count,
      starts ? 0 : 1,
      this.#workspace,
    );
    if (!ends) return -1;
    const solved = this.#solveSums(row, n);
    this.#objective.view[0] += lastObjective(scope, this.#workspace, this.#size);
    return solved ? -1 : 0;
  }

  /** Solves a row of n ratings from the sums of A and b over its ratings, which are in the workspace. */
  #solveSums(row: number, n: number): boolean {
    const { kernels, params } = this.#scope;
    const solved = kernels.solveAccumulatedImplicit(
      this.#size,
      params.rank,
      this.#gram,
      this.#shifts[row],
      params.anchored ? 1 : 0,
      this.#output.pointer + row * this.#size,
      this.#previous.pointer + row * this.#size,
      methodOf(n, params),
      params.cgSteps,
      this.#workspace,
    );
    return solved !== 0;
  }
}
