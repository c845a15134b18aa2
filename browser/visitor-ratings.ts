import type { RequestRatings } from '../api/serving/fold-in-request.ts';
import { UNKNOWN_KEY } from '../engine/keys/tables/key-table.ts';
import { dataSetName } from '../engine/partition.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../operators/ratings/rating-block.ts';
import type { LaterRatings } from '../operators/serving/fold-in/solve-users.ts';

/** The ratings of several visitors, as the solver takes them: a row for each visitor. */
export function ratingsOfVisitors(visitors: readonly RequestRatings[]): LaterRatings {
  const items = Uint32Array.from(new Set(visitors.flatMap((visitor) => Array.from(visitor.items)))).sort();
  const columnOf = new Map(Array.from(items, (item, column) => [item, column]));
  const block = blockOfRows(
    visitors.map((visitor) => Array.from(visitor.items, (item) => columnOf.get(item)!)),
  );
  block.values.set(visitors.flatMap(({ ratings }) => ratings));
  return { block, items };
}

/**
 * The items that each of several rows must not have in its list. `positions`: the items of the search, if
 * not all items are searched; the block has places in this list.
 */
export function leftOut(
  rows: readonly Uint32Array[],
  { items, positions }: { readonly items: number; readonly positions: Uint32Array | undefined },
): RatingBlock {
  if (positions === undefined) return blockOfRows(rows);
  const placeOf = new Uint32Array(items).fill(UNKNOWN_KEY);
  positions.forEach((item, place) => (placeOf[item] = place));
  return blockOfRows(
    rows.map((row) => Array.from(row, (item) => placeOf[item]).filter((place) => place !== UNKNOWN_KEY)),
  );
}

/** A block with these columns in each row, ascending, and the value 0. */
function blockOfRows(rows: readonly ArrayLike<number>[]): RatingBlock {
  const partition = emptyBlock(Int32Array.from(rows, ({ length }) => length));
  const block = blockOf({ name: dataSetName('visitors'), partition: 0, version: 0 }, partition);
  rows.forEach((row, at) => block.indices.set(row, block.offsets[at]));
  return block;
}
