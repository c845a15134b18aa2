import { type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';

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
