import type { Device } from '../engine/executor.ts';
import { keyCount, takeKeys } from '../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { CounterRandom } from '../engine/random.ts';
import { randomOrder } from '../engine/plan/grid-order.ts';
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
 * Chunks whose codes lead to other numbers: what was position p is `users[p]` or `items[p]`. The codes stay; only the maps
 * are new, and the old ones are released.
 */
export async function renumberChunks(chunks: readonly CodedChunk[], users: Uint32Array, items: Uint32Array, device: Device): Promise<CodedChunk[]> {
  const name = dataSetName('renumbered');
  const composed = async (side: string, i: number, map: PartitionRef | undefined, numbers: Uint32Array): Promise<PartitionRef> => {
    const ref: PartitionRef = { name: `${name}/${side}`, partition: i, version: 0 };
    const old = map && ((await device.fetch(map)).columns.map as Uint32Array);
    const composition = old === undefined ? numbers : sharedArray(Uint32Array, old.length);
    if (old !== undefined) for (let code = 0; code < old.length; code++) composition[code] = numbers[old[code]];
    if (map) device.release(map);
    device.put(ref, { layout: 'map', rows: composition.length, columns: { map: composition } });
    return ref;
  };
  return Promise.all(chunks.map(async (chunk, i) => ({ ...chunk, userMap: await composed('users', i, chunk.userMap, users), itemMap: await composed('items', i, chunk.itemMap, items) })));
}

/**
 * The same ratings under new numbers, so that bands of adjacent users or items are like any others (libmf does it for
 * balance). With `swapped` users and items change places: the "users" of the result are the items.
 */
export async function relabel(indexed: IndexedRatings, users: Labels, items: Labels, swapped: boolean, device: Device): Promise<IndexedRatings> {
  const renumbered = await renumberChunks(indexed.chunks, users.label, items.label, device);
  const chunks = swapped ? await Promise.all(renumbered.map((chunk) => swapSides(chunk, device))) : renumbered;
  const side = (ids: IndexedRatings['users'], counts: Int32Array, { order }: Labels) => {
    const relabelled = new Int32Array(order.length);
    for (let label = 0; label < order.length; label++) relabelled[label] = counts[order[label]];
    return { ids: takeKeys(ids, order), counts: relabelled };
  };
  const [user, item] = [side(indexed.users, indexed.userCounts, users), side(indexed.items, indexed.itemCounts, items)];
  const [row, column] = swapped ? [item, user] : [user, item];
  return { users: row.ids, items: column.ids, userCounts: row.counts, itemCounts: column.counts, rows: indexed.rows, chunks, ...(swapped ? { swapped } : {}) };
}

async function swapSides(chunk: CodedChunk, device: Device): Promise<CodedChunk> {
  const codes: PartitionRef = { ...chunk.codes, name: `${chunk.codes.name}/swapped` };
  const { columns } = await device.fetch(chunk.codes);
  device.release(chunk.codes);
  device.put(codes, { layout: 'coded-pairs', rows: chunk.rows, columns: { users: columns.items, items: columns.users } });
  return { ...chunk, codes, userMap: chunk.itemMap, itemMap: chunk.userMap };
}

/** Labels of a column of ids. */
export function labelsOf(ids: IndexedRatings['users'], seed: number, stream: number): Labels {
  return randomLabels(keyCount(ids), seed, stream);
}
