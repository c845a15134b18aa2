/** Shifts of the diagonal of A before it is solved. */
import { WORD } from '../simd';

/**
 * A's float32 rounding error is at most about this times √f times the largest diagonal element of A. A shift
 * of this size keeps A positive definite.
 */
const ROUNDING: f32 = 5e-6;

/**
 * Returns the shift that an exact solve adds to A's diagonal: `shift`, but at least A's rounding error, so
 * that A is positive definite in float32. This changes A by no more than its rounding. A negative shift is
 * returned as it is. If A and `shift` are 0, the result is 1, and so x = 0.
 */
export function definiteShift(matrix: usize, size: usize, rank: i32, shift: f32): f32 {
  if (shift < 0) return shift;
  const step = size + WORD;
  let largest: f32 = 0;
  for (let i = 0; i < rank; i++) largest = max(largest, load<f32>(matrix + <usize>i * step));
  if (largest == 0 && shift == 0) return 1;
  return max(shift, ROUNDING * sqrt<f32>(<f32>rank) * largest);
}

/**
 * Adds `value` to the first `rank` elements of the diagonal, and 1 to the padding's, so that A stays
 * definite.
 */
export function addDiagonal(matrix: usize, size: usize, rank: i32, value: f32): void {
  const step = size + WORD;
  const columns = <i32>(size >> 2);
  let element = matrix;
  for (let i = 0; i < rank; i++) {
    store<f32>(element, load<f32>(element) + value);
    element += step;
  }
  for (let i = rank; i < columns; i++) {
    store<f32>(element, load<f32>(element) + 1);
    element += step;
  }
}
