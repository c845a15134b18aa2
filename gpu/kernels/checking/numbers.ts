/** The largest difference, over the largest element; NaN where there is one. */
export function deviation(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(found[i] - expected[i]));
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return difference / (largest || 1);
}
