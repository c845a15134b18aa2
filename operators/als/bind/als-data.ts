import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import type { RowPart } from '../../../engine/row-parts.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { Ratings } from '../../ratings/ratings.ts';

export interface AlsData {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /**
   * Known pairs of the validation set by user, coded by the training set's positions; for implicit data the
   * pairs to rank.
   */
  readonly test?: RatingBlock;
  /** For implicit data: the number added to the diagonal of each row, see rowShifts. */
  readonly shifts?: Readonly<Record<'users' | 'items', Float32Array>>;
  /** With biases: see itemTotals. */
  readonly totals?: Float32Array;
}

/** Factors of one side in host memory. */
export interface TrainedSide {
  /** rows x rank. */
  readonly values: Float32Array;
  readonly bias?: Float32Array;
}

/** Factors from which training starts. */
export interface AlsStart {
  /** Prefix of its partitions' names, if they have already been sent to a device; see placeStart. */
  readonly name?: string;
  readonly users: TrainedSide;
  readonly items: TrainedSide;
}

/** Parts of both sides in host memory, in order; with biases each part includes its rows' biases. */
export interface TrainedFactors {
  readonly users: readonly RowPart[];
  readonly items: readonly RowPart[];
}

/** Parameters that depend on the ratings. */
export interface BoundParams {
  readonly biases: boolean;
  /** μ with biases, else 0. */
  readonly mean: number;
  /** o of λ n^ν + o, in the ratings' unit. */
  readonly offset: number;
  /** The unit of the ratings: see ratingUnit. */
  readonly unit: number;
}
