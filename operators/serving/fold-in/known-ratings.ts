import { type KeyColumn, keyCount, takeKeys } from '../../../engine/keys/key-column.ts';
import { UNKNOWN_KEY } from '../../../engine/keys/tables/key-table.ts';
import { dataSetName, sharedArray } from '../../../engine/partition.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { type FactorModel, lookupOf } from '../factor-model.ts';
import type { UserRule } from './row-rule.ts';
import type { LaterRatings } from './solve-users.ts';

/** Ratings of users whose factors are to be computed (folded in), reduced to items that the model knows. */
export interface KnownRatings extends LaterRatings {
  /** Users with at least one such rating, ascending. */
  readonly users: KeyColumn;
  /** Number of users without a rating of a known item, and number of ratings of unknown items. */
  readonly withoutItems: number;
  readonly coldRatings: number;
}

/**
 * Removes ratings of unknown items from a block, in place. `users` and `items` are the block's own ids; the
 * result's columns are positions in the model.
 */
export function knownRatings(
  {
    users,
    items,
    byUser,
  }: { readonly users: KeyColumn; readonly items: KeyColumn; readonly byUser: RatingBlock },
  model: FactorModel,
  { implicit }: UserRule,
): KnownRatings {
  const positions = lookupOf(model.items).positionsOf(items);
  const { rows, offsets, indices, values } = byUser;
  const columnOf = new Uint32Array(keyCount(items)).fill(UNKNOWN_KEY);
  const known = positions.filter((position) => position !== UNKNOWN_KEY);
  let columns = 0;
  positions.forEach(
    (position, item) => (columnOf[item] = position === UNKNOWN_KEY ? UNKNOWN_KEY : columns++),
  );
  const kept = sharedArray(Int32Array, rows + 1);
  const rowOf: number[] = [];
  let next = 0;
  for (let row = 0; row < rows; row++) {
    const start = next;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const column = columnOf[indices[k]];
      // In implicit data, a rating of 0 is the same as no rating.
      if (column === UNKNOWN_KEY || (implicit !== undefined && values[k] === 0)) continue;
      indices[next] = column;
      values[next++] = values[k];
    }
    if (next === start) continue;
    rowOf.push(row);
    kept[rowOf.length] = next;
  }
  const coldRatings = indices.length - next;
  const block = {
    ref: { name: dataSetName('known-ratings'), partition: 0, version: 0 },
    rows: rowOf.length,
    ratings: next,
    offsets: kept.subarray(0, rowOf.length + 1),
    indices: indices.subarray(0, next),
    values: values.subarray(0, next),
  };
  return {
    users: takeKeys(users, rowOf),
    block,
    items: known,
    withoutItems: rows - rowOf.length,
    coldRatings,
  };
}
