import type { RowRange } from '../../engine/plan/stages.ts';
import { Method, type RowProblem } from '../generated/structs.ts';
import { blockOf, type MatrixView, type ScopeOf, type TaskHandler, valuesOf } from '../handler.ts';
import type { Struct } from '../scratch.ts';
import { priorTotal, solveLongRow, solveTiledRows, type SolvedTiles } from './passes.ts';
import {
  isFar,
  type Priors,
  priorsOf,
  ratingsOf,
  type RowChunk,
  rowChunks,
  rowColumn,
  rowProblem,
} from './row-chunks.ts';
import { biasShift, costsOf, formsLongRows, methodOf, requireSolvable, rowShift } from './solvers.ts';

export const update: TaskHandler<'update'> = (scope) => {
  const { tiled, only } = scope.params;
  const solved: SolvedTiles =
    tiled && only !== 'others'
      ? solveTiledRows(scope, tiled)
      : { rows: 0, ratings: 0, objectives: [0], badRow: -1 };
  const update = new RowUpdate(scope, (_, n) => rowShift(n, scope.params), solved);
  for (const { from, to } of otherRuns(scope)) update.run(from, to);
  const { rows, bytesUp, badRow, objective } = update;
  const objectives = only === 'tiled' ? { objectives: solved.objectives } : { objective };
  return { rows, bytesUp, values: { badRow, ...objectives } };
};

export const updateImplicit: TaskHandler<'update-implicit'> = (scope) => {
  const { from, to } = scope.params;
  const shifts = scope.partition('shifts').columns.values as Float32Array;
  const update = new RowUpdate(scope, (row) => shifts[row]);
  const anchors = valuesOf<Uint8Array>(scope, 'anchors');
  for (let row = from, first = row; row < to; first = row) {
    while (row < to && anchors?.[row] === anchors?.[first]) row++;
    update.run(first, row, anchors?.[first] === 1);
  }
  const { bytesUp, badRow, objective } = update;
  return { rows: to - from, bytesUp, values: { badRow, objective } };
};

/**
 * Solves rows chunk by chunk. A row that is longer than a chunk is read piece by piece: in each step of CG, or
 * once if it is solved from a formed A.
 */
class RowUpdate {
  rows: number;
  bytesUp: number;
  badRow: number;
  readonly #scope: ScopeOf<'update'> | ScopeOf<'update-implicit'>;
  readonly #shiftOf: (row: number, n: number) => number;
  readonly #offsets: Int32Array;
  readonly #output: MatrixView;
  readonly #previous: MatrixView;
  readonly #priors: Priors;
  readonly #bias: Float32Array | undefined;
  readonly #ratings: ReturnType<typeof ratingsOf>;
  readonly #weighed: boolean;
  readonly #problem: Struct<typeof RowProblem>;
  /** For a chunk's rows: shifts of A's diagonal, shifts of the biases, and the biases. */
  readonly #columns: Readonly<Record<'shifts' | 'ownShifts' | 'biases', ReturnType<typeof rowColumn>>>;
  /** Sum of the ratings of a long row so far. */
  #total = 0;

  /** `shiftOf`: the shift of a row with n ratings. */
  constructor(
    scope: ScopeOf<'update'> | ScopeOf<'update-implicit'>,
    shiftOf: (row: number, n: number) => number,
    { rows, ratings, badRow, objectives }: SolvedTiles = { rows: 0, ratings: 0, objectives: [0], badRow: -1 },
  ) {
    const { params } = scope;
    this.#scope = scope;
    this.#shiftOf = shiftOf;
    this.#offsets = blockOf(scope).offsets;
    [this.#output, this.#previous] = [scope.matrix('factors'), scope.matrix('previous')];
    this.#priors = priorsOf(scope);
    requireSolvable(scope, this.#output, params);
    this.#bias = valuesOf(scope, 'bias');
    const implicit = 'alpha' in params ? params : undefined;
    this.#ratings = ratingsOf(scope, 'alpha' in params ? { implicit: params } : params);
    this.#weighed = implicit !== undefined;
    const fixed = scope.matrix('fixed');
    this.#problem = rowProblem(scope, this.#output, this.#weighed).set({
      theta: fixed.pointer,
      far: isFar(fixed),
      gram: implicit ? scope.matrix('gram').pointer : 0,
      cgBelow: params.cgBelow,
      steps: params.cgSteps,
      settles: params.settles ? 1 : 0,
      exact: Method[params.exact ?? 'cholesky'],
      objectives: objectives[0],
    });
    const [shifts, ownShifts, biases] = ([0, 1, 2] as const).map((which) => rowColumn(scope, which));
    this.#columns = { shifts, ownShifts, biases };
    [this.rows, this.badRow] = [rows, badRow];
    this.bytesUp = 8 * ratings + 4 * rows;
  }

  get objective(): number {
    return this.#problem.get('objectives');
  }

  /** `anchored`: true if the rows' priors have earlier ratings in them. */
  run(from: number, to: number, anchored = false): void {
    const scope = this.#scope;
    this.#problem.set({ anchored: anchored ? 1 : 0 });
    const { perRating, perRow } = costsOf(scope, this.#output, scope.params, this.#weighed);
    for (const chunk of rowChunks(scope, from, to, perRating, perRow)) {
      this.bytesUp += 8 * chunk.count + (this.#weighed ? 8 : 4) * chunk.rows;
      this.#placeShifts(chunk);
      const bad = chunk.starts && chunk.ends ? this.#solveRows(chunk) : this.#solvePiece(chunk);
      if (bad >= 0) this.badRow = this.badRow < 0 ? chunk.row + bad : Math.min(this.badRow, chunk.row + bad);
      if (!chunk.ends) continue;
      this.rows += chunk.rows;
      this.#bias?.set(this.#columns.biases.values.subarray(0, chunk.rows), chunk.row);
    }
  }

  #placeShifts({ row, rows, starts }: RowChunk): void {
    const { shifts, ownShifts, biases } = this.#columns;
    const { params } = this.#scope;
    const priors = this.#priors.biases;
    // At the later pieces of a long row, its bias may have been solved.
    if (priors && starts) biases.values.set(priors.subarray(row, row + rows));
    for (let r = 0; r < rows; r++) {
      const n = this.#offsets[row + r + 1] - this.#offsets[row + r];
      shifts.values[r] = this.#shiftOf(row + r, n);
      if (this.#bias && 'lambda' in params) ownShifts.values[r] = biasShift(n, params);
    }
  }

  /** Addresses of a row's new and old factors, and of its prior. */
  #factorsOf(row: number) {
    const at = row * this.#output.stride * 4;
    const prior = this.#priors.of(row);
    return { x: this.#output.pointer + at, previous: this.#previous.pointer + at, prior };
  }

  /**
   * Solves the whole rows of a chunk. Returns the first row of the chunk whose solution is not finite, or -1.
   */
  #solveRows(chunk: RowChunk): number {
    const { row, rows, indices, offsets } = chunk;
    const { shifts, ownShifts, biases } = this.#columns;
    const [ownAt, biasAt] = this.#bias ? [ownShifts.address, biases.address] : [0, 0];
    const { address } = this.#problem.set({ indices, ...this.#ratings(chunk), ...this.#factorsOf(row) });
    return this.#scope.kernels.updateRows(address, rows, offsets, shifts.address, ownAt, biasAt);
  }

  /**
   * Solves a long row at its first piece, or adds the piece to A and solves the row after the last piece.
   * Returns 0 if the solution is not finite, else -1.
   */
  #solvePiece(chunk: RowChunk): number {
    const { row, starts, ends, count, indices } = chunk;
    const { kernels, params } = this.#scope;
    const n = this.#offsets[row + 1] - this.#offsets[row];
    if (!formsLongRows(this.#scope, this.#output, n, params))
      return starts && !this.#solveLongRow(row, n) ? 0 : -1;
    const ratings = this.#ratings(chunk);
    const biased = this.#bias ? 1 : 0;
    if (starts) this.#total = 0;
    if (biased) this.#total += kernels.sumOf(ratings.values, count);
    const { address } = this.#problem.set({ indices, ...ratings, count });
    kernels.accumulateRow(address, biased, starts ? 0 : 1);
    if (!ends) return -1;
    const problem = this.#placeLongRow(row, n);
    problem.set({ total: this.#total + priorTotal(problem) });
    const solved = kernels.solveAccumulated(address, methodOf(n, params));
    this.#addObjective();
    return solved ? -1 : 0;
  }

  #solveLongRow(row: number, n: number): boolean {
    const problem = this.#placeLongRow(row, n);
    const long = { row, size: 4 * this.#output.stride, biased: this.#bias !== undefined };
    const solved = solveLongRow(this.#scope, problem, long, this.#ratings);
    this.#addObjective();
    return solved;
  }

  /** Sets what a problem has of a row. The shifts of a long row are the first ones of their columns. */
  #placeLongRow(row: number, n: number): Struct<typeof RowProblem> {
    const { shifts, ownShifts, biases } = this.#columns;
    this.#problem.set({ shift: shifts.values[0], ...this.#factorsOf(row) });
    const [ownShift] = ownShifts.values;
    const priorBias = this.#priors.biases?.[row] ?? 0;
    if (this.#bias) this.#problem.set({ bias: biases.address, ownShift, priorBias, weight: n + ownShift });
    return this.#problem;
  }

  #addObjective(): void {
    this.#problem.set({ objectives: this.objective + this.#problem.get('objective') });
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
