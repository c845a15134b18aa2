import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import type { RowPart, StoredNumbers } from '../../../engine/row-parts.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { Ratings } from '../../ratings/ratings.ts';
import type { BlockInFile } from '../../ratings/sorting/columns-of-block.ts';

export interface AlsData {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /**
   * The pairs of the validation set whose user and item are in the training set, by user, with the row
   * numbers of the training set. For implicit data, the pairs to rank.
   */
  readonly test?: RatingBlock;
  /** For implicit data: the number that is added to the diagonal of each row's equations, see rowShifts. */
  readonly shifts?: Readonly<Record<'users' | 'items', Float32Array>>;
  /** With biases: see itemTotals. */
  readonly totals?: Float32Array;
  /** The blocks of ratings in files, for a plan that solves a side from vertical parts: see fileBlocks. */
  readonly blocks?: FileBlocks;
}

/** Blocks R(ij) in files, in row-major order, of the sides that have them. */
export type FileBlocks = Readonly<Partial<Record<'users' | 'items', readonly BlockInFile[]>>>;

/** A matrix in host memory or in files. */
export type FactorValues = Float32Array | StoredNumbers;

/** Factors of one side; by default in host memory. */
export interface TrainedSide<Values = Float32Array> {
  /** rows x rank. */
  readonly values: Values;
  readonly bias?: Float32Array;
}

/** Factors from which training starts. */
export interface AlsStart<Values = Float32Array> {
  /** Prefix of the names of the start's partitions, if they are on a device already; see placeStart. */
  readonly name?: string;
  readonly users: TrainedSide<Values>;
  readonly items: TrainedSide<Values>;
}

/**
 * The factors of both sides in host memory or in files, in parts, in row order. With biases each part
 * includes its rows' biases.
 */
export interface TrainedFactors {
  readonly users: readonly RowPart[];
  readonly items: readonly RowPart[];
}

/** Parameters of tasks that are only known once the ratings are. */
export interface BoundParams {
  readonly biases: boolean;
  /** μ with biases, else 0. */
  readonly mean: number;
  /** The constant o of the regularization λ n^ν + o, in the unit of the given ratings. */
  readonly offset: number;
  /** The unit of the ratings: see ratingUnit. */
  readonly unit: number;
}
