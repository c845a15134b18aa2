import type { Device } from '../engine/executor.ts';
import { keyCount, takeKeys } from '../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { CounterRandom } from '../engine/random.ts';
import { randomOrder } from './block-order.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';

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
 * The same ratings under new numbers, so that bands of adjacent users or items are like any others (libmf does it for
 * balance). With `swapped` users and items change places: the "users" of the result are the items. Chunks' codes stay; only
 * their maps are new, and the old ones are released.
 */
export async function relabel(indexed: IndexedRatings, users: Labels, items: Labels, swapped: boolean, device: Device): Promise<IndexedRatings> {
  const name = dataSetName('relabelled');
  const chunks: CodedChunk[] = [];
  for (const [i, chunk] of indexed.chunks.entries()) {
    const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: i, version: 0 });
    const composed = async (part: string, map: PartitionRef | undefined, { label }: Labels) => {
      const old = map && ((await device.fetch(map)).columns.map as Uint32Array);
      if (map) device.release(map);
      const composition = old === undefined ? label : sharedArray(Uint32Array, old.length);
      if (old !== undefined) for (let code = 0; code < old.length; code++) composition[code] = label[old[code]];
      device.put(ref(part), { layout: 'map', rows: composition.length, columns: { map: composition } });
      return ref(part);
    };
    const [userMap, itemMap] = [await composed('user-map', chunk.userMap, users), await composed('item-map', chunk.itemMap, items)];
    if (!swapped) {
      chunks.push({ ...chunk, userMap, itemMap });
      continue;
    }
    const { columns } = await device.fetch(chunk.codes);
    device.release(chunk.codes);
    device.put(ref('codes'), { layout: 'coded-pairs', rows: chunk.rows, columns: { users: columns.items, items: columns.users } });
    chunks.push({ ...chunk, codes: ref('codes'), userMap: itemMap, itemMap: userMap });
  }
  const side = (ids: IndexedRatings['users'], counts: Int32Array, { order }: Labels) => ({ ids: takeKeys(ids, order), counts: Int32Array.from(order, (position) => counts[position]) });
  const [user, item] = [side(indexed.users, indexed.userCounts, users), side(indexed.items, indexed.itemCounts, items)];
  const [row, column] = swapped ? [item, user] : [user, item];
  return { users: row.ids, items: column.ids, userCounts: row.counts, itemCounts: column.counts, rows: indexed.rows, chunks, ...(swapped ? { swapped } : {}) };
}

/** Labels of a column of ids. */
export function labelsOf(ids: IndexedRatings['users'], seed: number, stream: number): Labels {
  return randomLabels(keyCount(ids), seed, stream);
}
