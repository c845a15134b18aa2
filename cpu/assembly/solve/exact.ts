/** The exact solvers of a formed A, by the numbers that tasks use (cpu/tasks/solvers.ts). */
import { dot } from '../vectors';
import { solveCholesky } from './cholesky';
import { solveNonnegative } from './nonnegative';

/** Values of `method`: CG is conjugate gradients; the others are the exact solvers. */
export const CG: i32 = 0;
export const CHOLESKY: i32 = 1;
export const NONNEGATIVE: i32 = 2;

/**
 * Solves A x = b and writes x to `output` and -bᵀx, a float64, to `objective`. A is at `workspace`, with its
 * shift added. `previous`: the row's previous x. `room`: the rest of the workspace. Returns false if there is
 * no solution, as when A is not positive definite, or if `method` is unknown.
 */
export function solveExactly(
  method: i32,
  workspace: usize,
  size: usize,
  rank: i32,
  b: usize,
  output: usize,
  previous: usize,
  room: usize,
  objective: usize,
): bool {
  if (method == NONNEGATIVE) {
    const solved = solveNonnegative(workspace, size, rank, b, output, previous, room);
    // On the features that are not 0, A x = b, so xᵀA x - 2 bᵀx = -bᵀx.
    store<f64>(objective, -(<f64>dot(b, output, size)));
    return solved;
  }
  if (method != CHOLESKY || !solveCholesky(workspace, size, b, output, b + size)) return false;
  // y, the solution of Uᵀy = b, has overwritten b, and bᵀx = yᵀy.
  store<f64>(objective, -(<f64>dot(b, b, size)));
  return true;
}
