import type { RecordBatch, Schema } from 'apache-arrow';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { mix32 } from '../../engine/random.ts';
import { keyTypeOfColumn } from '../ratings/rows/columns.ts';
import { requireTimes, timesOf } from './times.ts';

/** The order in which a user's ratings are held out: by time, or random by a hash of user, item and seed. */
export type PairOrder = { readonly user: string; readonly item: string } & (
  | { readonly by: 'time'; readonly timestamp: string }
  | { readonly by: 'random'; readonly seed: number }
);

/** Sort keys of the rows of a batch: `times`, then `hashes`. Repetitions of a pair have equal hashes. */
export interface OrderedPairs {
  readonly users: KeyColumn;
  /** All 0 in a random order. */
  readonly times: Float64Array;
  readonly hashes: Uint32Array;
}

export function columnsOfOrder(order: PairOrder): readonly string[] {
  return order.by === 'time' ? [order.user, order.item, order.timestamp] : [order.user, order.item];
}

/** Throws DataError unless the columns exist and have types that can be ids and times. */
export function requireOrder(schema: Schema, order: PairOrder): void {
  if (order.by === 'time') requireTimes(schema, order.timestamp);
  for (const column of [order.user, order.item]) keyTypeOfColumn(schema, column);
}

export function orderedPairs(batch: RecordBatch, order: PairOrder): OrderedPairs {
  const users = keysOf(batch, order.user);
  if (order.by === 'random')
    return {
      users,
      times: new Float64Array(batch.numRows),
      hashes: pairHashes(batch, order.user, order.item, order.seed),
    };
  const items = keyHashes(keysOf(batch, order.item));
  return {
    users,
    times: timesOf(batch, order.timestamp),
    hashes: items.low.map((low, i) => mix32(low, items.high[i])),
  };
}

/** A hash of (user, item, seed) for each row. */
export function pairHashes(batch: RecordBatch, user: string, item: string, seed: number): Uint32Array {
  const [users, items] = [user, item].map((name) => keyHashes(keysOf(batch, name)));
  const hashes = new Uint32Array(batch.numRows);
  for (let i = 0; i < hashes.length; i++)
    hashes[i] = mix32(mix32(mix32(mix32(seed, users.low[i]), users.high[i]), items.low[i]), items.high[i]);
  return hashes;
}

function keysOf(batch: RecordBatch, name: string): KeyColumn {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
  // A value that is not an exact id gets an arbitrary hash here; the consumer of the rows reports it.
  return keysFromData(data, keyTypeOf(data.type, name), () => {});
}
