import type { ExactSolver, SolverChoice } from '../../operators/tasks/task-types.ts';

/**
 * `method`: the solver's number in cpu/assembly/solve/exact.ts. `factorizations`: approximate cost of solving
 * a row, relative to one float32 Cholesky factorization.
 */
const exactSolvers: Readonly<
  Record<ExactSolver, { readonly method: number; readonly factorizations: number }>
> = {
  cholesky: { method: 1, factorizations: 1 },
  // In float64.
  nonnegative: { method: 2, factorizations: 5 },
};

export function exactSolverOf({ exact = 'cholesky' }: SolverChoice) {
  return exactSolvers[exact];
}

/** The method for a row of n ratings whose A has been formed; 0 is CG. */
export function methodOf(n: number, choice: SolverChoice): number {
  const { cgBelow, settles = false, exact = 'cholesky' } = choice;
  return exact === 'cholesky' && !settles && n < cgBelow ? 0 : exactSolverOf(choice).method;
}
