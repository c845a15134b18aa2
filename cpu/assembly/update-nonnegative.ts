/**
 * One half-iteration whose rows keep x >= 0: for each row u, A_u and b_u are formed as update.ts forms them for Cholesky (cuMF,
 * eq. 2, with λ n_u once on the diagonal), and min ½ xᵀA_u x - b_uᵀx is found over x >= 0 before the next row begins. The
 * last `free` features are not bounded: with biases the last feature solved is a bias, which may be negative.
 *
 * A row depends on its ratings and on which of its previous factors are above 0, never on the rows beside it. The workspace is
 * that of update.ts; the solver's part lies in what the tiles of A no longer need.
 */
import { addDiagonal } from './normal-equations';
import { solveNonnegative } from './solve/nonnegative';
import { accumulateRow, gatheredOf, vectorsOf } from './update';
import { clear } from './vectors';

/** Solves the row whose A (without λ) and b lie in the workspace; true when x is a finite solution. */
export function solveAccumulatedNonnegative(size: usize, rank: i32, free: i32, shift: f32, output: usize, previous: usize, workspace: usize): bool {
  addDiagonal(workspace, size, rank, shift);
  return solveNonnegative(workspace, size, rank, free, vectorsOf(workspace, size), output, previous, gatheredOf(workspace, size));
}

/** The arguments and the result of updateRows, with `free` in the place of CG's. */
export function updateRowsNonnegative(
  theta: usize,
  size: usize,
  rank: i32,
  free: i32,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  lambda: f64,
  output: usize,
  previous: usize,
  workspace: usize,
): i32 {
  let badRow = -1;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    const start = load<i32>(offsets);
    const count = load<i32>(offsets, 4) - start;
    const at = (<usize>(start - origin)) << 2;
    if (count == 0) {
      clear(output, size);
    } else {
      accumulateRow(theta, size, indices + at, values + at, count, false, workspace);
      const shift = <f32>(lambda * <f64>count);
      if (!solveAccumulatedNonnegative(size, rank, free, shift, output, previous, workspace) && badRow < 0) badRow = row;
    }
    offsets += 4;
    output += size;
    previous += size;
  }
  return badRow;
}
