/** The largest difference relative to the largest element; NaN if any element is NaN. */
export function deviation(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(found[i] - expected[i]));
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return difference / (largest || 1);
}

/** The larger error; NaN counts as the largest. */
export function worse(left: number, right: number): number {
  return left >= right || Number.isNaN(left) ? left : right;
}

/** Random numbers in [0, 1); a seed gives the same numbers on any machine (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The difference of a value from the CPU's value, relative to it. */
export function relative(value: number, twin: number): number {
  return Math.abs(value - twin) / (Math.abs(twin) || 1);
}
