import { DataError } from '../../../engine/errors.ts';
import {
  type KeyColumn,
  keyCount,
  takeKeys,
  widen,
  type MergedKeys,
  mergeKeys,
} from '../../../engine/keys/key-column.ts';
import { type PartitionRef, sharedArray, type Partition } from '../../../engine/partition.ts';
import { CounterRandom, randomOrder } from '../../../engine/random.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { TaskRun } from '../../tasks/run-tasks.ts';
import type { CodedChunk } from '../reading/rating-chunk.ts';
import { type IndexedRatings, mapPartition } from './number-ids.ts';

const STAGE = 'index-ids';

/**
 * A renumbering of users or items: `label[position]` is the new number, and `order[number]` is the old
 * position.
 */
export interface Labels {
  readonly label: Uint32Array;
  readonly order: Uint32Array;
}

/**
 * Renumbers the users and items of chunks: position p becomes `users[p]` or `items[p]`. Only the maps from a
 * chunk's codes to positions are replaced; the old ones are freed.
 */
export async function renumberChunks(
  chunks: readonly CodedChunk[],
  users: Uint32Array,
  items: Uint32Array,
  ctx: ExecutionContext,
): Promise<CodedChunk[]> {
  const run = new TaskRun(ctx, STAGE);
  const maps = { users: mapPartition(users), items: mapPartition(items) };
  const numbers = { users: run.send('of-users', maps.users), items: run.send('of-items', maps.items) };
  const positions: [PartitionRef, Partition][] = [];
  const compose = (side: 'users' | 'items', first: PartitionRef | undefined, partition: number) => {
    const map = run.ref(side, partition);
    if (first === undefined) {
      // Without a map, the codes are positions already.
      positions.push([map, maps[side]]);
      return map;
    }
    run.task({
      kernel: 'compose-maps',
      inputs: { first, second: numbers[side] },
      outputs: { map },
      params: {},
    });
    run.free(first);
    return map;
  };
  const renumbered = chunks.map((chunk, c) => ({
    ...chunk,
    userMap: compose('users', chunk.userMap, c),
    itemMap: compose('items', chunk.itemMap, c),
  }));
  await giveTo(ctx, run.at, positions);
  await run.end();
  return renumbered;
}

/**
 * The same ratings under random numbers of users and items, so that ranges of adjacent users or items are
 * statistically alike and take equal time (as libmf does). With `swapped`, users and items are exchanged: the
 * "users" of the result are the items, but the chunks' codes stay as they are.
 */
export async function relabel(
  indexed: IndexedRatings,
  users: Labels,
  items: Labels,
  swapped: boolean,
  ctx: ExecutionContext,
): Promise<IndexedRatings> {
  const chunks = await renumberChunks(indexed.chunks, users.label, items.label, ctx);
  const side = (ids: IndexedRatings['users'], counts: Int32Array, { order }: Labels) => {
    const relabelled = new Int32Array(order.length);
    for (let label = 0; label < order.length; label++) relabelled[label] = counts[order[label]];
    return { ids: takeKeys(ids, order), counts: relabelled };
  };
  const [user, item] = [
    side(indexed.users, indexed.userCounts, users),
    side(indexed.items, indexed.itemCounts, items),
  ];
  const [row, column] = swapped ? [item, user] : [user, item];
  const own = { users: row.ids, items: column.ids, userCounts: row.counts, itemCounts: column.counts };
  return { ...indexed, ...own, chunks, swapped };
}

/** A random renumbering of a column of ids. It depends on the seed, the stream and their number alone. */
export function labelsOf(ids: KeyColumn, seed: number, stream: number): Labels {
  const count = keyCount(ids);
  const order = randomOrder(count, new CounterRandom(seed, 0x5ed).derive(stream));
  const label = sharedArray(Uint32Array, count);
  for (let i = 0; i < count; i++) label[order[i]] = i;
  return { label, order };
}

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
    indexed: { ...indexed, users: users.keys, items: items.keys, userCounts, itemCounts, chunks },
    users: users.first,
    items: items.first,
  };
}

/**
 * Numbers of ratings of numbered rows: `own`, and at `places` those of the model's rows. Undefined if the
 * model does not have them.
 */
export function widenedCounts(
  own: ArrayLike<number>,
  counts: Uint32Array | undefined,
  places: Uint32Array,
): Uint32Array | undefined {
  if (counts === undefined) return undefined;
  const all = sharedArray(Uint32Array, own.length);
  all.set(own);
  counts.forEach((count, row) => (all[places[row]] += count));
  return all;
}

/** Merges two ascending columns of ids. */
export function joinKeys(first: KeyColumn, second: KeyColumn, side: string): MergedKeys {
  if (first.type === second.type) return mergeKeys(first, second);
  if (first.type === 'utf8' || second.type === 'utf8') {
    throw new DataError(
      `the model's ${side} ids are ${first.type}, but ids of the new ratings are ${second.type}`,
      { phase: 'read', advice: 'Convert one of them, or train a new model' },
    );
  }
  return mergeKeys(widen(first), widen(second));
}

function spread(counts: Int32Array, { keys, second }: MergedKeys): Int32Array {
  const all = new Int32Array(keyCount(keys));
  for (let i = 0; i < counts.length; i++) all[second[i]] = counts[i];
  return all;
}
