/** Choices between ways to solve a row, by their costs. */
import { canForm } from './workspace';

/**
 * Decides whether CG first forms A, by measured costs. The unit is one register-block step for a rating and a
 * feature. Forming A costs `stride` for each rating, and a pass over A as much as 4 ratings. A matrix-free
 * pass costs 4 for a rating whose panel is kept, and 8 for a rating that is gathered again.
 */
@inline
export function formingIsCheaper(count: i32, kept: i32, stride: i32, steps: i32): bool {
  const passes = steps + 1;
  return (count + 4 * passes) * stride < passes * (4 * kept + 8 * (count - kept));
}

/**
 * Decides whether CG forms A for rows that are longer than a chunk, none of whose panels are kept. With
 * `settles` rows may need an exact solve, and so A where it can be formed.
 */
export function formsLongRows(size: usize, steps: i32, settles: bool): bool {
  return canForm(size) && (settles || <i32>(size >> 2) < 8 * (steps + 1));
}

/**
 * True if solving the n x n dual system costs less than solving A: if the row's number of ratings n, rounded
 * up to whole register blocks, is below the padded number of features. The padding is less than one block, so
 * then n < f.
 */
@inline
export function dualIsCheaper(count: i32, size: usize): bool {
  return ((((<usize>count) << 2) + 31) & ~(<usize>31)) < size;
}
