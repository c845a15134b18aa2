import type { BlockBytes } from './block-bytes.ts';

export type Side = 'users' | 'items';

/** Sums over the ratings of all workers, from which the unit of training is computed. */
export interface RatingSums {
  readonly ratings: number;
  readonly squares: number;
}

/** The facts about a block that is built. */
export interface BlockFacts {
  readonly rows: number;
  /** Rows of the other side that occur. */
  readonly columns: number;
  readonly ratings: number;
  readonly sum: number;
  readonly squares: number;
  /** For each block of the other side, the number of this block's rows that it needs. */
  readonly sends?: readonly number[];
  readonly bytes: BlockBytes;
}

/** Σ r and Σ r² of a block's ratings. */
export function sumsOfValues(values: Float32Array): Pick<BlockFacts, 'sum' | 'squares'> {
  let [sum, squares] = [0, 0];
  for (let k = 0; k < values.length; k++) {
    sum += values[k];
    squares += values[k] ** 2;
  }
  return { sum, squares };
}
