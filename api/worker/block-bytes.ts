import { blockBytes, factorBytes } from '../../operators/planner/sizes.ts';

/**
 * Bytes of host memory that a block of rows takes in its worker, on a CPU:
 *
 * - `kept`: from loading to the end: ratings, ids, lists of the rows to send, and the rows themselves;
 * - `loading`: in addition while it is loaded: the chunks from which its ratings are sorted;
 * - `solving`: in addition while it is solved: the rows of the fixed side that it needs, its rows before and
 *   after, as the kernels read and write them, the rows after for their frames, and two frames.
 */
export interface BlockBytes {
  readonly kept: number;
  readonly loading: number;
  readonly solving: number;
}

/** Bytes of ids and of the tables that find them, for each row of either side. */
const ID_BYTES = 24;

/** Bytes of a rating in the chunks: two numbers and the value. */
const CHUNK_BYTES = 12;

const FRAME_BYTES = 2 * (16 << 20);

/** `sent`: rows to send, summed over the blocks of the other side. */
export function bytesOfBlock(
  { rows, columns, ratings, sent }: Record<'rows' | 'columns' | 'ratings' | 'sent', number>,
  rank: number,
): BlockBytes {
  return {
    kept: blockBytes(rows, ratings) + ID_BYTES * (rows + columns) + 4 * sent + 4 * rank * rows,
    loading: CHUNK_BYTES * ratings,
    solving: factorBytes(columns + 2 * rows, rank) + 4 * rank * rows + FRAME_BYTES,
  };
}
