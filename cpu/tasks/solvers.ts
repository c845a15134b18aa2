import { UsageError } from '../../engine/errors.ts';
import type { ExactSolver, RowRegularization, SolverChoice } from '../../operators/tasks/task-types.ts';
import { Method } from '../generated/structs.ts';
import type { MatrixView, TaskScope } from '../handler.ts';

/** Approximate cost of solving a row, relative to one float32 Cholesky factorization. */
const factorizations: Readonly<Record<ExactSolver, number>> = {
  cholesky: 1,
  // In float64.
  nonnegative: 5,
};

/** The method for a row of n ratings whose A has been formed. */
export function methodOf(n: number, choice: SolverChoice): number {
  const { cgBelow, settles = false, exact = 'cholesky' } = choice;
  return exact === 'cholesky' && !settles && n < cgBelow ? Method.cg : Method[exact];
}

type Shape = Pick<MatrixView, 'stride' | 'columns'>;

/** True if A is formed for rows of n ratings that are longer than a chunk. */
export function formsLongRows(
  { kernels }: TaskScope,
  { stride }: Shape,
  n: number,
  choice: SolverChoice,
): boolean {
  const { cgBelow, cgSteps, settles = false, exact = 'cholesky' } = choice;
  if (exact !== 'cholesky' || n >= cgBelow) return true;
  return kernels.formsLongRows(4 * stride, cgSteps, settles ? 1 : 0) !== 0;
}

/** Larger than the number of ratings of any row. */
const ANY_ROW = 2 ** 31 - 1;

/** Throws UsageError if rows need an exact solve, but have too many features for a formed A. */
export function requireSolvable(
  { kernels }: TaskScope,
  { stride, columns }: Shape,
  { cgBelow, exact = 'cholesky' }: SolverChoice,
): void {
  if (kernels.canForm(4 * stride) || (exact === 'cholesky' && cgBelow >= ANY_ROW)) return;
  throw new UsageError(`rows of ${columns} features are too long for the exact solver ${exact}`, {
    phase: 'solve',
    advice: 'Use solver cg, or a rank of at most 512',
  });
}

/**
 * Approximate nanoseconds of solving a row, for rowChunks. `gram`: true if each step multiplies a matrix G.
 */
export function costsOf(
  { kernels }: TaskScope,
  { stride }: Shape,
  choice: SolverChoice,
  gram = false,
): { readonly perRating: number; readonly perRow: number } {
  if (kernels.canForm(4 * stride)) {
    const perRating = stride ** 2 / 40;
    return { perRating, perRow: perRating * stride * factorizations[choice.exact ?? 'cholesky'] };
  }
  const perRating = (stride * (choice.cgSteps + 1)) / 8;
  return { perRating, perRow: gram ? perRating * stride : perRating };
}

/** n^ν; 0 for a row without ratings. */
export function ratingPower(n: number, exponent: number): number {
  if (exponent === 1) return n;
  return n === 0 ? 0 : n ** exponent;
}

/** The shift of the diagonal of A for a row of n ratings: λ n^ν + o. */
export function rowShift(n: number, { lambda, exponent = 1, offset = 0 }: RowRegularization): number {
  return lambda * ratingPower(n, exponent) + offset;
}

/**
 * Regularization of the bias of a row with n ratings: biasLambda n + damping, added to the bias's diagonal
 * element of A, which is n.
 */
export function biasShift(
  n: number,
  { lambda, biasLambda = lambda, damping = 0 }: RowRegularization,
): number {
  return biasLambda * n + damping;
}
