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
