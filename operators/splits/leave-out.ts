import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeRows } from '../dataflow/take-rows.ts';
import type { HeldOutRatings } from './held-out-ratings.ts';
import { columnsOfOrder, orderedPairs, type PairOrder, requireOrder } from './pair-order.ts';

/**
 * The two parts of a leave-out split: keeps either the last k ratings of every user who has more than k, or
 * all other ratings.
 */
export class LeaveOut implements Operator {
  readonly name = 'leave-out';
  readonly passesNeeds = true;
  readonly #order: PairOrder;
  readonly #heldOut: HeldOutRatings;
  readonly #keep: 'held-out' | 'others';

  constructor(order: PairOrder, heldOut: HeldOutRatings, keep: 'held-out' | 'others') {
    this.#order = order;
    this.#heldOut = heldOut;
    this.#keep = keep;
  }

  describe(): JsonObject {
    return { ...this.#order, k: this.#heldOut.k, keep: this.#keep };
  }

  outputSchema(input: Schema): Schema {
    requireOrder(input, this.#order);
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted && [...new Set([...wanted, ...columnsOfOrder(this.#order)])];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(this.outputSchema(input.schema), this.#filter(input));
  }

  async *#filter(input: BatchStream) {
    const { users, k, times, hashes, more } = this.#heldOut;
    for await (const batch of input) {
      const pairs = orderedPairs(batch, this.#order);
      const codes = new Uint32Array(batch.numRows);
      users.find(pairs.users, codes);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < codes.length; i++) {
        const user = codes[i];
        const least = user * k + k - 1;
        const heldOut =
          user !== UNKNOWN_KEY &&
          more[user] === 1 &&
          (pairs.times[i] > times[least] ||
            (pairs.times[i] === times[least] && pairs.hashes[i] >= hashes[least]));
        if (heldOut === (this.#keep === 'held-out')) positions[kept++] = i;
      }
      if (kept === batch.numRows) yield batch;
      else if (kept > 0) yield takeRows(batch, positions.subarray(0, kept));
    }
  }
}
