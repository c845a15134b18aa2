import { type Partition, sharedArray } from '../engine/partition.ts';
import type { RatingPreset } from '../synthetic/preset.ts';
import { generateRatings } from '../synthetic/ratings/rating-generator.ts';
import { buildRatingTables } from '../synthetic/ratings/rating-tables.ts';

/** The training part as two rating-blocks. */
export function ratingBlocks(preset: RatingPreset): { byUser: Partition; byItem: Partition } {
  const { users: m, items: n, train } = preset;
  const [user, item, rating] = [new Int32Array(train), new Int32Array(train), new Float32Array(train)];
  let at = 0;
  for (const { batch } of generateRatings(buildRatingTables(preset, 1), { parts: ['train'] })) {
    [user, item, rating].forEach((column, k) =>
      column.set(batch.getChildAt(k)!.data[0].values as Int32Array, at),
    );
    at += batch.numRows;
  }
  // Users are in order: sorted by item, users ascend within an item; sorted back by user, items ascend within
  // a user.
  const byItem = compress(n, item, user, rating);
  const items = new Int32Array(train);
  const offsets = byItem.columns.offsets as Int32Array;
  for (let row = 0; row < n; row++) items.fill(row, offsets[row], offsets[row + 1]);
  return {
    byItem,
    byUser: compress(m, byItem.columns.indices as Uint32Array, items, byItem.columns.values as Float32Array),
  };
}

function compress(
  rows: number,
  rowOf: ArrayLike<number>,
  columnOf: ArrayLike<number>,
  ratings: ArrayLike<number>,
): Partition {
  const train = ratings.length;
  const offsets = sharedArray(Int32Array, rows + 1);
  const indices = sharedArray(Uint32Array, train);
  const values = sharedArray(Float32Array, train);
  for (let k = 0; k < train; k++) offsets[rowOf[k] + 1]++;
  for (let row = 0; row < rows; row++) offsets[row + 1] += offsets[row];
  const cursors = offsets.slice();
  for (let k = 0; k < train; k++) {
    const place = cursors[rowOf[k]]++;
    indices[place] = columnOf[k];
    values[place] = ratings[k];
  }
  return { layout: 'rating-block', rows, columns: { offsets, indices, values } };
}
