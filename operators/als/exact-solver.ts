import type { ExactSolver } from '../tasks/task-types.ts';

/** True for values of `solver` that solve every row exactly. */
export function isExact(solver: 'auto' | 'cg' | ExactSolver): solver is ExactSolver {
  return solver !== 'auto' && solver !== 'cg';
}
