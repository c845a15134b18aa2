import type { RowRegularization } from '../../operators/tasks/task-types.ts';

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
