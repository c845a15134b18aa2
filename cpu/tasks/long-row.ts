import type { SolverChoice } from '../../operators/tasks/task-types.ts';
import type { MatrixView, TaskScope } from '../handler.ts';
import { isFar, type RowChunk, rowChunks } from './row-chunks.ts';

/** A piece of the row's ratings in scratch; addresses. `weights` is 0 for explicit ratings. */
export interface PlacedRatings {
  /** Ratings without μ and the fixed side's biases, or targets; read in the first pass only. */
  readonly values: number;
  readonly weights: number;
}

/** A row with more ratings than a chunk holds, solved by CG without forming its A. */
export interface LongRow {
  readonly row: number;
  readonly choice: Pick<SolverChoice, 'cgSteps' | 'settles'>;
  readonly fixed: MatrixView;
  readonly output: MatrixView;
  readonly previous: MatrixView;
  /** Address of G, or 0. */
  readonly gram: number;
  readonly anchored: boolean;
  readonly shift: number;
  /** For a row with a bias: c, which is n plus the bias's regularization, and the bias's address; else 0. */
  readonly weight: number;
  readonly bias: number;
  /** Address of the rest of scratch. */
  readonly workspace: number;
  /** Prepares a chunk's ratings for a pass; `first` is true in the first pass. */
  place(chunk: RowChunk, first: boolean): PlacedRatings;
}

const RESIDUAL = 0;
const PRODUCT = 1;
const CURVATURE = 2;

/**
 * Solves a long row by the steps of cpu/assembly/solve/long-row.ts; the ratings are copied to scratch piece
 * by piece in each pass. Returns the row's objective, and true if its solution is finite.
 */
export function solveLongRow(
  scope: TaskScope,
  problem: LongRow,
): { readonly solved: boolean; readonly objective: number } {
  const { row, choice, output, previous, gram, anchored, shift, weight, bias, workspace } = problem;
  const { kernels, memory } = scope;
  const size = 4 * output.stride;
  const x = output.pointer + row * size;
  kernels.startLongRow(size, gram, shift, anchored ? 1 : 0, previous.pointer + row * size, x, workspace);
  const total = pass(scope, problem, RESIDUAL);
  let unsettled = kernels.beginLongRow(size, gram, shift, weight, total, x, workspace) !== 0;
  // The last step needs no residual, unless the caller wants to know if the row is settled.
  const full = choice.settles ? choice.cgSteps : choice.cgSteps - 1;
  for (let step = 0; step < full && unsettled && !scope.cancelled(); step++) {
    pass(scope, problem, PRODUCT);
    unsettled = kernels.stepLongRow(size, gram, shift, weight, x, workspace) !== 0;
  }
  if (unsettled && full < choice.cgSteps) {
    pass(scope, problem, CURVATURE);
    kernels.takeLastLongStep(size, gram, shift, weight, x, workspace);
  }
  const solved = kernels.endLongRow(size, weight, total, bias, x, workspace) !== 0;
  return { solved, objective: new Float64Array(memory.buffer, workspace, 1)[0] };
}

/** One pass over the row's ratings. Returns, for the first pass of a row with a bias, their sum. */
function pass(
  scope: TaskScope,
  { row, fixed, output, weight, workspace, place }: LongRow,
  which: typeof RESIDUAL | typeof PRODUCT | typeof CURVATURE,
): number {
  const { kernels } = scope;
  const size = 4 * output.stride;
  const biased = weight > 0;
  let total = 0;
  for (const chunk of rowChunks(scope, scope.partition('block'), row, row + 1, 0, 0)) {
    const { values, weights } = place(chunk, which === RESIDUAL);
    if (biased && which === RESIDUAL) total += kernels.sumOf(values, chunk.count);
    kernels.passLongRow(
      fixed.pointer,
      size,
      chunk.indices,
      values,
      weights,
      chunk.count,
      which,
      biased ? 1 : 0,
      output.pointer + row * size,
      workspace,
      isFar(fixed),
    );
  }
  return total;
}
