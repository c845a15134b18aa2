import type { RowRange } from '../../engine/plan/stages.ts';
import type { RatingBlock, RowPointers } from './rating-block.ts';

/** Rows of ratings in a file, or in several blocks, whose pointers together are float64. */
export type RatedRows = Pick<RatingBlock, 'ref' | 'ratings'> & RowPointers;

/** The ratings of some rows in a run of columns, which are numbered from 0. */
export interface ColumnBlock {
  readonly firstColumn: number;
  /** Without its ratings once a device alone has them: see leaveRatings. */
  block: RatingBlock;
}

/** The rows [from, from + rows) of one side, numbered from 0. */
export interface RatingPart extends RatedRows {
  readonly from: number;
  /**
   * The ratings in memory, in the order of their columns. Absent: they are in a file, under the part's name.
   */
  readonly blocks?: readonly ColumnBlock[];
  /** The slices of a pass over all ratings that are in this part, where parts consist of whole slices. */
  readonly slices?: readonly RowRange[];
}

/**
 * Ratings sorted into the rows of one side, in parts of adjacent rows. Usually one part with one block in
 * memory; more where a block, or memory, does not hold all.
 */
export interface Ratings {
  readonly rows: number;
  readonly ratings: number;
  readonly parts: readonly RatingPart[];
}

/** The same ratings by both sides. */
export interface RatingSides {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
}

/** A block of some rows and columns in memory. */
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

/** The rows of blocks in the order of their columns. */
export function partOfBlocks(from: number, blocks: readonly ColumnBlock[]): RatingPart {
  const [{ block }] = blocks;
  const { ref, rows, ratings, offsets } = block;
  if (blocks.length === 1) return { from, blocks, ref, rows, ratings, offsets };
  const all = new Float64Array(rows + 1);
  for (const { block: own } of blocks) for (let row = 0; row <= rows; row++) all[row] += own.offsets[row];
  return { from, blocks, ref, rows, ratings: all[rows], offsets: all };
}

/** The block of ratings that are one block in memory, else undefined. */
export function soleBlock({ parts: [part, ...others] }: Ratings): RatingBlock | undefined {
  return others.length === 0 && part?.blocks?.length === 1 ? part.blocks[0].block : undefined;
}

/** The block of ratings that are one block in memory. */
export function oneBlock(ratings: Ratings): RatingBlock {
  const block = soleBlock(ratings);
  if (block === undefined) throw new Error('the ratings lie in parts');
  return block;
}

/** All blocks of ratings in memory, part by part. */
export function heldBlocks({ parts }: Ratings): HeldBlock[] {
  return parts.flatMap(({ from, blocks }) => {
    if (blocks === undefined) throw new Error('a part of the ratings lies in a file');
    return blocks.map((block) => ({ from, ...block }));
  });
}

/** Ratings of a row. */
export function lengthOfRow({ parts }: Ratings, row: number): number {
  const part = parts.find(({ from, rows }) => row < from + rows);
  return part === undefined ? 0 : part.offsets[row - part.from + 1] - part.offsets[row - part.from];
}
