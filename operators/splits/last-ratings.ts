import type { RecordBatch } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData, keyTypeOf, refusedIn } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import type { KeyTable } from '../../engine/keys/key-table.ts';
import { makeKeyTable } from '../../engine/keys/make-key-table.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { mix32 } from '../../engine/random.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { requireTimes, timesOf } from './times.ts';

export interface TimedPairColumns {
  readonly user: string;
  readonly item: string;
  readonly timestamp: string;
}

/** The last rating of every user, by the number that the table gives the user. */
export interface LastRatings {
  readonly users: KeyTable;
  readonly times: Float64Array;
  /** Of the item. Among ratings of one time the one with the greatest is the last. */
  readonly hashes: Uint32Array;
  /** Rows of the user. */
  readonly counts: Uint32Array;
}

/** Finds the last rating of every user: one pass, and memory for the users only. */
export class FindLastRatings implements Sink<LastRatings> {
  readonly name = 'last-ratings';
  readonly #columns: TimedPairColumns;

  constructor(columns: TimedPairColumns) {
    this.#columns = columns;
  }

  describe(): JsonObject {
    return { ...this.#columns };
  }

  requiredColumns(): readonly string[] {
    return Object.values(this.#columns);
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<LastRatings> {
    requireTimes(input.schema, this.#columns.timestamp);
    const field = input.schema.fields.find(({ name }) => name === this.#columns.user);
    const users = makeKeyTable(keyTypeOf(field?.type as NonNullable<typeof field>['type'], this.#columns.user));
    let [times, hashes, counts] = [new Float64Array(1024), new Uint32Array(1024), new Uint32Array(1024)];
    let rows = 0;
    for await (const batch of input) {
      const timed = timedPairs(batch, this.#columns);
      const codes = new Uint32Array(batch.numRows);
      users.add(timed.users, codes);
      if (users.size > times.length) [times, hashes, counts] = [grown(times, users.size), grown(hashes, users.size), grown(counts, users.size)];
      for (let i = 0; i < codes.length; i++) {
        const user = codes[i];
        const later = timed.times[i] > times[user] || (timed.times[i] === times[user] && timed.hashes[i] > hashes[user]);
        if (later || counts[user] === 0) [times[user], hashes[user]] = [timed.times[i], timed.hashes[i]];
        counts[user]++;
      }
      rows += batch.numRows;
      ctx.events({ type: 'phase-progress', phase: 'last-ratings', done: rows, unit: 'rows' });
    }
    return { users, times, hashes, counts };
  }
}

/** The keys by which a batch's rows are ordered: users, times, and a hash of the items. */
export function timedPairs(batch: RecordBatch, columns: TimedPairColumns): { readonly users: KeyColumn; readonly times: Float64Array; readonly hashes: Uint32Array } {
  const keys = (name: string) => {
    const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
    return keysFromData(data, keyTypeOf(data.type, name), refusedIn(batch, name));
  };
  const items = keyHashes(keys(columns.item));
  return { users: keys(columns.user), times: timesOf(batch, columns.timestamp), hashes: items.low.map((low, i) => mix32(low, items.high[i])) };
}

function grown<T extends Float64Array | Uint32Array>(values: T, least: number): T {
  const larger = new (values.constructor as { new (length: number): T })(2 * least);
  larger.set(values);
  return larger;
}
