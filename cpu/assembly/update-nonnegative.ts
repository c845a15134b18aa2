/**
 * One half-iteration whose rows keep x >= 0: for each row u, A_u and b_u are formed as update.ts forms them
 * for Cholesky (cuMF, eq. 2, with the row's shift once on the diagonal), and min ½ xᵀA_u x - b_uᵀx is found
 * over x >= 0 before the next row begins. A bias is not bounded: it is eliminated first, which leaves the
 * same problem (solve/eliminate-bias.ts).
 *
 * A row depends on its ratings and on which of its previous factors are above 0, never on the rows beside it.
 * The workspace is that of update.ts; the solver's part lies in what the tiles of A no longer need.
 *
 */
import { addDiagonal } from './solve/diagonal';
import { lower } from './solve/steps';
import { biasOf, eliminateBias } from './solve/eliminate-bias';
import { solveNonnegative } from './solve/nonnegative';
import { accumulateRow, gatheredOf, objectiveOf, sumsOf, vectorsOf } from './update';
import { clear, dot, sumOf } from './vectors';

/**
 * Solves the row whose A (without its shift), b and s lie in the workspace, as solveAccumulated does; true
 * when x is a finite solution.
 */
export function solveAccumulatedNonnegative(
  size: usize,
  rank: i32,
  shift: f32,
  weight: f32,
  total: f32,
  bias: usize,
  output: usize,
  previous: usize,
  workspace: usize,
): bool {
  const b = vectorsOf(workspace, size);
  const sums = sumsOf(workspace, size);
  if (weight > 0) eliminateBias(workspace, size, b, sums, weight, total);
  addDiagonal(workspace, size, rank, shift);
  const solved = solveNonnegative(workspace, size, rank, b, output, previous, gatheredOf(workspace, size));
  const objective = objectiveOf(workspace, size);
  // A x = b on the features that are not 0.
  store<f64>(objective, -(<f64>dot(b, output, size)));
  if (weight > 0) {
    store<f32>(bias, biasOf(size, sums, weight, total, output));
    lower(objective, total, weight);
  }
  return solved;
}

/** The arguments and the result of updateRows, without CG's. */
export function updateRowsNonnegative(
  theta: usize,
  size: usize,
  rank: i32,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  shifts: usize,
  ownShifts: usize,
  biases: usize,
  output: usize,
  previous: usize,
  workspace: usize,
  objective: usize,
): i32 {
  let badRow = -1;
  let sum = load<f64>(objective);
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    const start = load<i32>(offsets);
    const count = load<i32>(offsets, 4) - start;
    const at = (<usize>(start - origin)) << 2;
    if (count == 0) {
      clear(output, size);
      if (biases) store<f32>(biases, 0);
    } else {
      const weight: f32 = biases ? <f32>count + load<f32>(ownShifts) : 0;
      const total: f32 = biases ? <f32>sumOf(values + at, count) : 0;
      accumulateRow(theta, size, indices + at, values + at, count, biases != 0, false, workspace);
      const solved = solveAccumulatedNonnegative(
        size,
        rank,
        load<f32>(shifts),
        weight,
        total,
        biases,
        output,
        previous,
        workspace,
      );
      if (!solved && badRow < 0) badRow = row;
      sum += load<f64>(objectiveOf(workspace, size));
    }
    offsets += 4;
    shifts += 4;
    if (biases) {
      ownShifts += 4;
      biases += 4;
    }
    output += size;
    previous += size;
  }
  store<f64>(objective, sum);
  return badRow;
}
