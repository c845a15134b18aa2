import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type PartitionRef, type SharedColumn, sharedArray } from '../../engine/partition.ts';
import { CounterRandom, randomOrder } from '../../engine/random.ts';
import { giveTo, takeFrom } from '../../engine/run/hand-over.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';
import { mapPartition } from './number-ids.ts';

const STAGE = 'index-ids';

/** New numbers for positions: `label[position]` is the new one, `order[label]` the position. */
export interface Labels {
  readonly label: Uint32Array;
  readonly order: Uint32Array;
}

/** Numbers drawn at random, a function of the seed, the stream and the count alone. */
export function randomLabels(count: number, seed: number, stream: number): Labels {
  const order = randomOrder(count, new CounterRandom(seed, 0x5ed).derive(stream));
  const label = sharedArray(Uint32Array, count);
  for (let i = 0; i < count; i++) label[order[i]] = i;
  return { label, order };
}

/**
 * Chunks whose codes lead to other numbers: position p becomes `users[p]` or `items[p]`. The codes stay; only the
 * maps are new, and the old ones are freed.
 */
export async function renumberChunks(chunks: readonly CodedChunk[], users: Uint32Array, items: Uint32Array, ctx: ExecutionContext): Promise<CodedChunk[]> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('renumbered');
  const renumbered: CodedChunk[] = [];
  // One chunk at a time: no more than its old maps are there beside the new ones.
  for (const [partition, chunk] of chunks.entries()) {
    const old = [chunk.userMap, chunk.itemMap];
    const taken = await takeFrom(ctx, STAGE, place, old.filter((ref) => ref !== undefined));
    const [userMap, itemMap] = old.map((ref) => (ref === undefined ? undefined : taken.shift()?.columns));
    const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition, version: 0 });
    const made = { ...chunk, userMap: ref('users'), itemMap: ref('items') };
    await giveTo(ctx, place, [
      [made.userMap, mapPartition(composed(userMap?.map, users))],
      [made.itemMap, mapPartition(composed(itemMap?.map, items))],
    ]);
    renumbered.push(made);
  }
  return renumbered;
}

/** The numbers of the codes of a map, or of codes that are positions already. */
function composed(map: SharedColumn | undefined, numbers: Uint32Array): Uint32Array {
  if (map === undefined) return numbers;
  const composition = sharedArray(Uint32Array, map.length);
  for (let code = 0; code < map.length; code++) composition[code] = numbers[map[code] as number];
  return composition;
}

/**
 * The same ratings under new numbers, so that bands of adjacent users or items are like any others (libmf does it for
 * balance). With `swapped` users and items change places: the "users" of the result are the items, but the chunks' codes stay as they are.
 */
export async function relabel(indexed: IndexedRatings, users: Labels, items: Labels, swapped: boolean, ctx: ExecutionContext): Promise<IndexedRatings> {
  const chunks = await renumberChunks(indexed.chunks, users.label, items.label, ctx);
  const side = (ids: IndexedRatings['users'], counts: Int32Array, { order }: Labels) => {
    const relabelled = new Int32Array(order.length);
    for (let label = 0; label < order.length; label++) relabelled[label] = counts[order[label]];
    return { ids: takeKeys(ids, order), counts: relabelled };
  };
  const [user, item] = [side(indexed.users, indexed.userCounts, users), side(indexed.items, indexed.itemCounts, items)];
  const [row, column] = swapped ? [item, user] : [user, item];
  return { users: row.ids, items: column.ids, userCounts: row.counts, itemCounts: column.counts, rows: indexed.rows, chunks, spilled: indexed.spilled, swapped };
}

/** Labels of a column of ids. */
export function labelsOf(ids: IndexedRatings['users'], seed: number, stream: number): Labels {
  return randomLabels(keyCount(ids), seed, stream);
}
