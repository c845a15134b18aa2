import type { AlsGrid } from './problem.ts';

/** The amount that is found is at most this factor above an amount that is too little. */
const PRECISION = 1.03;

/** Factor by which the search raises an amount that is too little, and the most times that it does. */
const RAISE = { factor: 1.25, times: 12 };

/** A grid, and the bytes of a device with which its plan fits. */
export interface LeastMemory {
  readonly bytes: number;
  readonly grid: AlsGrid;
}

/**
 * Finds the least memory of a device with which some plan fits, to a few percent, by trying amounts.
 * Undefined if more memory does not help.
 *
 * `tooFew`: bytes with which no plan fits. `estimate`: bytes with which a plan may fit. `fitting`: returns a
 * grid whose plan fits devices with that number of bytes.
 */
export function leastMemory(
  tooFew: number,
  estimate: number,
  fitting: (bytes: number) => AlsGrid | undefined,
): LeastMemory | undefined {
  let low = tooFew;
  let bytes = Math.ceil(Math.max(estimate, tooFew * PRECISION));
  let grid = fitting(bytes);
  for (let times = 0; grid === undefined; times++) {
    if (times === RAISE.times) return undefined;
    low = bytes;
    bytes = Math.ceil(bytes * RAISE.factor);
    grid = fitting(bytes);
  }
  while (bytes > PRECISION * low) {
    // Amounts below the estimate are hardly ever enough, so the first of them is close to it.
    const middle = Math.ceil(Math.max(Math.sqrt(low * bytes), bytes / RAISE.factor));
    const found = fitting(middle);
    if (found === undefined) low = middle;
    else [bytes, grid] = [middle, found];
  }
  return { bytes, grid };
}
