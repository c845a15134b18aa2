import type { RowRange } from '../../engine/plan/stages.ts';
import type { RatingBlock, RowPointers } from './rating-block.ts';

/**
 * Ratings of some rows, in a file or in several blocks in memory. The offsets are float64, so that they can
 * count all ratings.
 */
export type RatedRows = Pick<RatingBlock, 'ref' | 'ratings'> & RowPointers;

/** A block of ratings in a range of columns. Its column numbers start at 0 for column `firstColumn`. */
export interface ColumnBlock {
  readonly firstColumn: number;
  /** Has no ratings if only a device has them (see leaveRatings). */
  block: RatingBlock;
}

/**
 * Ratings of the rows [from, from + rows) of one side (users or items). Rows are numbered from 0 within the
 * part.
 */
export interface RatingPart extends RatedRows {
  readonly from: number;
  /**
   * The ratings in memory, in the order of their columns. Absent if they are in a file with the part's name.
   */
  readonly blocks?: readonly ColumnBlock[];
  /** Ranges of rows for the tasks of a pass over all ratings, if the part consists of whole ranges. */
  readonly slices?: readonly RowRange[];
}

/**
 * All ratings with users, or items, as rows; cut into parts of adjacent rows. Usually there is one part with
 * one block in memory; more if a block, or memory, cannot hold all.
 */
export interface Ratings {
  readonly rows: number;
  readonly ratings: number;
  readonly parts: readonly RatingPart[];
}

/** All ratings twice: sorted by user and sorted by item. */
export interface RatingSides {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
}

/** A block in memory, with the positions of its first row and first column among all. */
export interface HeldBlock extends ColumnBlock {
  /** Position of the block's first row. */
  readonly from: number;
}

export function ofParts(parts: readonly RatingPart[]): Ratings {
  return {
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    ratings: parts.reduce((sum, { ratings }) => sum + ratings, 0),
    parts,
  };
}

/** The ratings of one block. */
export function ratingsOf(block: RatingBlock): Ratings {
  return ofParts([partOfBlock(0, block)]);
}

/** A part that is one block of all columns. */
export function partOfBlock(from: number, block: RatingBlock): RatingPart {
  return partOfBlocks(from, [{ firstColumn: 0, block }]);
}

/** A part from blocks of the same rows, in the order of their columns. */
export function partOfBlocks(from: number, blocks: readonly ColumnBlock[]): RatingPart {
  const [{ block }] = blocks;
  const { ref, rows, ratings, offsets } = block;
  if (blocks.length === 1) return { from, blocks, ref, rows, ratings, offsets };
  const all = new Float64Array(rows + 1);
  for (const { block: own } of blocks) for (let row = 0; row <= rows; row++) all[row] += own.offsets[row];
  return { from, blocks, ref, rows, ratings: all[rows], offsets: all };
}

/** The block, if the ratings are one block in memory; else undefined. */
export function soleBlock({ parts: [part, ...others] }: Ratings): RatingBlock | undefined {
  return others.length === 0 && part?.blocks?.length === 1 ? part.blocks[0].block : undefined;
}

/** The block of ratings that are one block in memory. */
export function oneBlock(ratings: Ratings): RatingBlock {
  const block = soleBlock(ratings);
  if (block === undefined) throw new Error('the ratings are in parts');
  return block;
}

/** All blocks of ratings in memory, part by part. */
export function heldBlocks({ parts }: Ratings): HeldBlock[] {
  return parts.flatMap(({ from, blocks }) => {
    if (blocks === undefined) throw new Error('a part of the ratings is in a file');
    return blocks.map((block) => ({ from, ...block }));
  });
}

/** Number of ratings of a row. */
export function lengthOfRow({ parts }: Ratings, row: number): number {
  const part = parts.find(({ from, rows }) => row < from + rows);
  return part === undefined ? 0 : part.offsets[row - part.from + 1] - part.offsets[row - part.from];
}
