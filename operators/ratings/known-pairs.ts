import type { RecordBatch } from 'apache-arrow';
import { hostDevice } from '../../engine/run/devices.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { UNKNOWN_KEY } from '../../engine/keys/key-table.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { lookupOf } from '../serving/factor-model.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';

export interface KnownPairs {
  /** The pairs whose user and item are both known, coded by position. */
  readonly indexed: IndexedRatings;
  /** Pairs with a user or an item that is not. */
  readonly coldPairs: number;
}

/** Gets a batch and the positions of its users and items, UNKNOWN_KEY for those that are not known. */
export type SeeCodes = (batch: RecordBatch, users: Uint32Array, items: Uint32Array) => void;

/**
 * Codes pairs by the positions of known ids (a validation set by the training set's ids, exclusions by a
 * model's). Cold pairs are counted and left out; `see` is shown the codes of every batch. Input: `user`, `item` and optionally `rating`, as SelectRatings gives them.
 */
export async function collectKnownPairs(input: BatchStream, users: KeyColumn, items: KeyColumn, ctx: ExecutionContext, see?: SeeCodes): Promise<KnownPairs> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('pairs');
  const [userLookup, itemLookup] = [lookupOf(users), lookupOf(items)];
  const ratingAt = input.schema.fields.findIndex((field) => field.name === 'rating');
  const userCounts = new Int32Array(keyCount(users));
  const itemCounts = new Int32Array(keyCount(items));
  const chunks: CodedChunk[] = [];
  let rows = 0;
  let coldPairs = 0;
  for await (const batch of input) {
    const [userCodes, itemCodes] = [userLookup.positions(batch, 'user'), itemLookup.positions(batch, 'item')];
    see?.(batch, userCodes, itemCodes);
    const given = ratingAt < 0 ? undefined : (batch.data.children[ratingAt].values as Float32Array);
    const [knownUsers, knownItems] = [sharedArray(Uint32Array, batch.numRows), sharedArray(Uint32Array, batch.numRows)];
    const ratings = sharedArray(Float32Array, batch.numRows);
    let known = 0;
    for (let i = 0; i < batch.numRows; i++) {
      if (userCodes[i] === UNKNOWN_KEY || itemCodes[i] === UNKNOWN_KEY) continue;
      knownUsers[known] = userCodes[i];
      knownItems[known] = itemCodes[i];
      userCounts[userCodes[i]]++;
      itemCounts[itemCodes[i]]++;
      if (given) ratings[known] = given[i];
      known++;
    }
    rows += known;
    coldPairs += batch.numRows - known;
    if (known === 0) continue;
    const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: chunks.length, version: 0 });
    const chunk: CodedChunk = { rows: known, codes: ref('codes'), values: ref('values') };
    await giveTo(ctx, place, [
      [chunk.codes, { layout: 'coded-pairs', rows: known, columns: { users: knownUsers.subarray(0, known), items: knownItems.subarray(0, known) } }],
      [chunk.values, { layout: 'values', rows: known, columns: { values: ratings.subarray(0, known) } }],
    ]);
    chunks.push(chunk);
  }
  return { indexed: { users, items, rows, userCounts, itemCounts, chunks }, coldPairs };
}
