import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { UNKNOWN_KEY } from '../../engine/keys/key-table.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { keyTypeOfColumn } from '../ratings/columns.ts';
import { type LastRatings, timedPairs, type TimedPairColumns } from './last-ratings.ts';
import { takeRows } from '../ratings/take-rows.ts';
import { requireTimes } from './times.ts';

/** Keeps the last rating of every user with two ratings or more, or all the other ratings. */
export class LeaveLastOut implements Operator {
  readonly name = 'leave-last-out';
  readonly passesNeeds = true;
  readonly #columns: TimedPairColumns;
  readonly #last: LastRatings;
  readonly #keep: 'last' | 'others';

  constructor(columns: TimedPairColumns, last: LastRatings, keep: 'last' | 'others') {
    this.#columns = columns;
    this.#last = last;
    this.#keep = keep;
  }

  describe(): JsonObject {
    return { ...this.#columns, keep: this.#keep };
  }

  outputSchema(input: Schema): Schema {
    requireTimes(input, this.#columns.timestamp);
    for (const column of [this.#columns.user, this.#columns.item]) keyTypeOfColumn(input, column);
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted && [...new Set([...wanted, ...Object.values(this.#columns)])];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(this.outputSchema(input.schema), this.#filter(input));
  }

  async *#filter(input: BatchStream) {
    const { users, times, hashes, counts } = this.#last;
    for await (const batch of input) {
      const timed = timedPairs(batch, this.#columns);
      const codes = new Uint32Array(batch.numRows);
      users.find(timed.users, codes);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < codes.length; i++) {
        const user = codes[i];
        const last = user !== UNKNOWN_KEY && counts[user] > 1 && timed.times[i] === times[user] && timed.hashes[i] === hashes[user];
        if (last === (this.#keep === 'last')) positions[kept++] = i;
      }
      if (kept === batch.numRows) yield batch;
      else if (kept > 0) yield takeRows(batch, positions.subarray(0, kept));
    }
  }
}
