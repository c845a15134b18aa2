import { DataError } from '../../../engine/errors.ts';
import { type KeyColumn, keyCount, widen } from '../../../engine/keys/key-column.ts';
import { type MergedKeys, mergeKeys } from '../../../engine/keys/merge-keys.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { IndexedRatings } from './index-ids.ts';
import { renumberChunks } from './relabel.ts';

/**
 * Ratings whose users and items are numbered together with a model's: the ids are the union of both. Also the
 * new positions of the model's ids.
 */
export interface WidenedRatings {
  readonly indexed: IndexedRatings;
  /** New position of each of the model's users and items. */
  readonly users: Uint32Array;
  readonly items: Uint32Array;
}

/**
 * Numbers the ratings' ids and a model's ids together, so that training can continue from the model with new
 * users and items. Throws DataError if the ids differ in type.
 */
export async function widenRatings(
  indexed: IndexedRatings,
  model: { readonly users: KeyColumn; readonly items: KeyColumn },
  ctx: ExecutionContext,
): Promise<WidenedRatings> {
  const users = joinKeys(model.users, indexed.users, 'user');
  const items = joinKeys(model.items, indexed.items, 'item');
  const chunks = await renumberChunks(indexed.chunks, users.second, items.second, ctx);
  const userCounts = spread(indexed.userCounts, users);
  const itemCounts = spread(indexed.itemCounts, items);
  return {
    indexed: {
      users: users.keys,
      items: items.keys,
      rows: indexed.rows,
      userCounts,
      itemCounts,
      chunks,
      spilled: indexed.spilled,
      room: indexed.room,
    },
    users: users.first,
    items: items.first,
  };
}

/** Merges two ascending columns of ids. */
export function joinKeys(first: KeyColumn, second: KeyColumn, side: string): MergedKeys {
  return mergeKeys(...sameType(first, second, side));
}

function sameType(first: KeyColumn, second: KeyColumn, side: string): readonly [KeyColumn, KeyColumn] {
  if (first.type === second.type) return [first, second];
  if (first.type === 'utf8' || second.type === 'utf8') {
    throw new DataError(
      `the model's ${side} ids are ${first.type}, but ids of the new ratings are ${second.type}`,
      { phase: 'read', advice: 'Convert one of them, or train a new model' },
    );
  }
  return [widen(first), widen(second)];
}

function spread(counts: Int32Array, { keys, second }: MergedKeys): Int32Array {
  const all = new Int32Array(keyCount(keys));
  for (let i = 0; i < counts.length; i++) all[second[i]] = counts[i];
  return all;
}
