/** The exact solvers of a formed A, by the number in tasks (cpu/tasks/solvers.ts). */
import { dot } from '../vectors';
import { solveCholesky } from './cholesky';
import { solveNonnegative } from './nonnegative';

/** Values of `method`: CG is conjugate gradients; the others are the exact solvers. */
export const CG: i32 = 0;
export const CHOLESKY: i32 = 1;
export const NONNEGATIVE: i32 = 2;

/**
 * Solves A x = b for x at `output` and stores -bᵀx, a float64, at `objective`. A is at `workspace`, with its
 * shift added. `previous`: the last x. `room`: the rest of the workspace. False for an A without a solution,
 * and for an unknown `method`.
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
    // A x = b on the features that are not 0.
    store<f64>(objective, -(<f64>dot(b, output, size)));
    return solved;
  }
  if (method != CHOLESKY || !solveCholesky(workspace, size, b, output, b + size)) return false;
  // The solution of Uᵀy = b has overwritten b; its square is bᵀx.
  store<f64>(objective, -(<f64>dot(b, b, size)));
  return true;
}
