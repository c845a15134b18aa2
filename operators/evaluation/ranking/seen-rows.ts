import { nextTurn } from '../../../engine/waits.ts';
import { dataSetName } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import { blocksOf } from '../../ratings/parts-in-files.ts';
import type { Ratings } from '../../ratings/ratings.ts';

/** Number of rows after which other work of this thread gets a turn. */
const ROWS_AT_ONCE = 1 << 16;

/**
 * The columns of the ratings of some rows (ascending positions), as one block without values. Ratings in
 * files are read in one pass.
 */
export async function seenRows(
  ratings: Ratings,
  positions: Uint32Array,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const pieces = Array.from(positions, (): Uint32Array[] => []);
  for await (const { from, firstColumn, block } of blocksOf(ratings, ctx)) {
    positions.forEach((row, at) => {
      if (row < from || row >= from + block.rows) return;
      const [start, end] = [block.offsets[row - from], block.offsets[row - from + 1]];
      if (end > start) pieces[at].push(block.indices.slice(start, end).map((column) => firstColumn + column));
    });
  }
  const partition = emptyBlock(
    Int32Array.from(pieces, (own) => own.reduce((sum, { length }) => sum + length, 0)),
  );
  const indices = partition.columns.indices as Uint32Array;
  let filled = 0;
  for (const piece of pieces.flat()) {
    indices.set(piece, filled);
    filled += piece.length;
  }
  return blockOf({ name: dataSetName('seen'), partition: 0, version: 0 }, partition);
}

/** Number of distinct rows of each column. */
export async function usersOfItems(
  ratings: Ratings,
  columns: number,
  ctx: ExecutionContext,
): Promise<Uint32Array> {
  const counts = new Uint32Array(columns);
  for await (const {
    firstColumn,
    block: { rows, offsets, indices },
  } of blocksOf(ratings, ctx)) {
    for (let row = 0; row < rows; row++) {
      if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await nextTurn();
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        if (k === offsets[row] || indices[k] !== indices[k - 1]) counts[firstColumn + indices[k]]++;
    }
  }
  return counts;
}
