import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
} from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';

/**
 * One block R(ij) of the rating matrix in compressed sparse rows, and its name on the devices (layout
 * rating-block of operators/tasks/tasks.ts). Its arrays form an Arrow List<Struct<index, value>>. Example of
 * two rows:
 *
 * offsets 0 2 3, indices 4 9 0, values 3.5 1 5   =   [{4, 3.5}, {9, 1}], [{0, 5}]
 */
export interface RatingBlock {
  readonly ref: PartitionRef;
  readonly rows: number;
  readonly ratings: number;
  /** Row pointers, Int32[rows + 1]. */
  readonly offsets: Int32Array;
  /** Uint32[ratings]: positions on the other side, ascending inside each row. */
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

export type BlockSize = Pick<RatingBlock, 'rows' | 'ratings'>;

/**
 * Allocates the arrays of a block whose ratings are filled in later. `lengths`: number of ratings of each
 * row, from which the offsets are computed. `room`: memory to use instead of new arrays, large enough for
 * these ratings.
 */
export function emptyBlock(
  lengths: Int32Array,
  valueType: 'float32' | 'uint32' = 'float32',
  room?: { readonly indices: Uint32Array; readonly values: Float32Array },
): Partition {
  const rows = lengths.length;
  const offsets = sharedArray(Int32Array, rows + 1);
  for (let row = 0; row < rows; row++) offsets[row + 1] = offsets[row] + lengths[row];
  const ratings = offsets[rows];
  if (room)
    return {
      layout: 'rating-block',
      rows,
      columns: {
        offsets,
        indices: room.indices.subarray(0, ratings),
        values: room.values.subarray(0, ratings),
      },
    };
  const values =
    valueType === 'float32' ? sharedArray(Float32Array, ratings) : sharedArray(Uint32Array, ratings);
  return {
    layout: 'rating-block',
    rows,
    columns: { offsets, indices: sharedArray(Uint32Array, ratings), values },
  };
}

export function blockOf(ref: PartitionRef, partition: Partition): RatingBlock {
  const { offsets, indices, values } = partition.columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  return { ref, rows: partition.rows, ratings: indices.length, offsets, indices, values };
}

/** A block without ratings from the columns of its rows: one array for each row, or in order, with `lengths`. */
export function blockOfColumns(
  name: string,
  columns: readonly Uint32Array[],
  lengths = Int32Array.from(columns, ({ length }) => length),
): RatingBlock {
  const block = blockOf(partitionRef(dataSetName(name)), emptyBlock(lengths));
  let filled = 0;
  for (const some of columns) {
    block.indices.set(some, filled);
    filled += some.length;
  }
  return block;
}

/** The block as a partition. */
export function hostForm({ rows, offsets, indices, values }: RatingBlock): Partition {
  return { layout: 'rating-block', rows, columns: { offsets, indices, values } };
}

/** Rows [from, to) of a block as a separate block, sharing its indices and values. */
export function rowsOfBlock(
  { offsets, indices, values }: RatingBlock,
  from: number,
  to: number,
  ref: PartitionRef,
): RatingBlock {
  const [first, last] = [offsets[from], offsets[to]];
  const own = sharedArray(Int32Array, to - from + 1);
  for (let row = 0; row < own.length; row++) own[row] = offsets[from + row] - first;
  return {
    ref,
    rows: to - from,
    ratings: last - first,
    offsets: own,
    indices: indices.subarray(first, last),
    values: values.subarray(first, last),
  };
}

/** Offsets of the rows' first ratings. As float64 they may address more ratings than one block holds. */
export interface RowPointers {
  readonly rows: number;
  readonly offsets: Int32Array | Float64Array;
}

/**
 * A block with the row offsets only, for tasks that read the lengths of rows but not indices and values.
 * Offsets from 2^32 on wrap around; a length, computed as a difference in 32 bits, is still correct.
 */
export function lengthsOfBlock({ rows, offsets }: RowPointers, ref: PartitionRef): RatingBlock {
  let pointers = offsets;
  if (pointers instanceof Float64Array) {
    pointers = sharedArray(Int32Array, rows + 1);
    pointers.set(offsets);
  }
  return {
    ref,
    rows,
    ratings: 0,
    offsets: pointers,
    indices: sharedArray(Uint32Array, 0),
    values: sharedArray(Float32Array, 0),
  };
}

/** The block as a partition for tasks that do not read its values. */
export function withoutValues(block: RatingBlock): Partition {
  return hostForm({ ...block, values: sharedArray(Float32Array, 0) });
}

/** Length of the longest row. */
export function longestRow(block: RowPointers): number {
  let longest = 0;
  for (let row = 0; row < block.rows; row++)
    longest = Math.max(longest, block.offsets[row + 1] - block.offsets[row]);
  return longest;
}

/** The largest absolute value of a block's ratings; 0 if it has none. */
export function largestRating({ values }: RatingBlock): number {
  let largest = 0;
  for (let k = 0; k < values.length; k++) largest = Math.max(largest, Math.abs(values[k]));
  return largest;
}

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
