import type { RowRegularization } from '../../operators/tasks/tasks.ts';

/** n^ν; 0 for a row without ratings. */
export function ratingPower(n: number, exponent: number): number {
  if (exponent === 1) return n;
  return n === 0 ? 0 : n ** exponent;
}

/** What a row of n ratings has on the diagonal of A: λ n^ν + o. */
export function rowShift(n: number, { lambda, exponent = 1, offset = 0 }: RowRegularization): number {
  return lambda * ratingPower(n, exponent) + offset;
}

/** What the bias of a row of n ratings has on the diagonal beside n: λ n + d. */
export function biasShift(n: number, { lambda, biasLambda = lambda, damping = 0 }: RowRegularization): number {
  return biasLambda * n + damping;
}
