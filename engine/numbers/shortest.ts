/** Decimal digits that identify any float32. */
const MOST_DIGITS = 9;

/**
 * The number with the fewest decimal digits that rounds to the same float32; the value itself if it is not a
 * float32.
 */
export function shortestFloat32(value: number): number {
  if (Math.fround(value) !== value) return value;
  for (let digits = 1; digits < MOST_DIGITS; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
