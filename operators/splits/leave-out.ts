import type { RecordBatch, Schema } from 'apache-arrow';
import { progressOf } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import { type KeyTable, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import type { Sink, ValueNeeds } from '../../engine/stream/operator.ts';
import { RowFilter } from '../dataflow/row-operator.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import {
  columnsOfOrder,
  type OrderedPairs,
  orderedPairs,
  type PairOrder,
  requireOrder,
} from './random-split.ts';
import { TimeSizes } from './time-split.ts';

/** Finds the last k ratings of every user in one pass, with memory for k ratings a user. */
export function findHeldOut(order: PairOrder, k: number): Sink<HeldOutRatings> {
  const name = 'held-out-ratings';
  return {
    name,
    needs: {
      numbers: order.by === 'time' ? [order.timestamp] : [],
      takesFaults: true,
      texts: [order.user, order.item],
    },
    describe: () => ({ ...order, k }),
    requiredColumns: () => columnsOfOrder(order),
    async consume(input, ctx) {
      requireOrder(input.schema, order);
      const { user } = order;
      const last = new HeldOutRatings(makeKeyTable(keyTypeOf(fieldOf(input.schema, user).type, user)), k);
      const sizes = order.by === 'time' ? new TimeSizes(input.schema, order.timestamp) : undefined;
      const progress = progressOf(ctx.events, name, 'rows');
      let rows = 0;
      for await (const batch of input) {
        const pairs = orderedPairs(batch, order);
        sizes?.add(pairs.times);
        last.add(pairs);
        rows += batch.numRows;
        progress.report(rows);
      }
      progress.flush();
      sizes?.report(ctx);
      return last;
    },
  };
}

/**
 * For each user, the keys (time and hash) of the last k ratings in an order; indexed by the user's number in
 * the table `users`. Repetitions of a pair at the same time count once. Memory grows with the number of users.
 */
class HeldOutRatings {
  readonly users: KeyTable;
  readonly k: number;
  /**
   * Times of user u at [u * k, (u + 1) * k), in descending order. Equal times are ordered by their hashes.
   */
  times = new Float64Array();
  hashes = new Uint32Array();
  /** Number of ratings kept for each user, at most k. */
  kept = new Uint32Array();
  /** 1 if a user has more than k ratings. */
  more = new Uint8Array();

  constructor(users: KeyTable, k: number) {
    this.users = users;
    this.k = k;
    this.#grow(1024);
  }

  add({ users, times, hashes }: OrderedPairs): void {
    const codes = new Uint32Array(times.length);
    this.users.add(users, codes);
    if (this.users.size > this.kept.length) this.#grow(2 * this.users.size);
    for (let i = 0; i < codes.length; i++) this.#insert(codes[i], times[i], hashes[i]);
  }

  #grow(users: number): void {
    this.times = grown(this.times, users * this.k);
    this.hashes = grown(this.hashes, users * this.k);
    this.kept = grown(this.kept, users);
    this.more = grown(this.more, users);
  }

  #insert(user: number, time: number, hash: number): void {
    const { k, times, hashes, kept } = this;
    const first = user * k;
    let place = first + kept[user];
    while (place > first && isBefore(times[place - 1], hashes[place - 1], time, hash)) place--;
    if (place > first && times[place - 1] === time && hashes[place - 1] === hash) return;
    if (kept[user] === k) this.more[user] = 1;
    else kept[user]++;
    if (place === first + k) return;
    times.copyWithin(place + 1, place, first + kept[user] - 1);
    hashes.copyWithin(place + 1, place, first + kept[user] - 1);
    [times[place], hashes[place]] = [time, hash];
  }
}

function isBefore(time: number, hash: number, otherTime: number, otherHash: number): boolean {
  return time < otherTime || (time === otherTime && hash < otherHash);
}

function grown<T extends Float64Array | Uint32Array | Uint8Array>(values: T, length: number): T {
  const larger = new (values.constructor as { new (length: number): T })(length);
  larger.set(values);
  return larger;
}

/**
 * The two parts of a leave-out split: keeps either the last k ratings of every user who has more than k, or
 * all other ratings.
 */
export class LeaveOut extends RowFilter {
  readonly name = 'leave-out';
  readonly passesNeeds = true;
  readonly #order: PairOrder;
  readonly #heldOut: HeldOutRatings;
  readonly #keep: 'held-out' | 'others';

  constructor(order: PairOrder, heldOut: HeldOutRatings, keep: 'held-out' | 'others') {
    super();
    this.#order = order;
    this.#heldOut = heldOut;
    this.#keep = keep;
  }

  get needs(): ValueNeeds {
    return { numbers: [], takesFaults: false, texts: [this.#order.user, this.#order.item] };
  }

  describe(): JsonObject {
    return { ...this.#order, k: this.#heldOut.k, keep: this.#keep };
  }

  override outputSchema(input: Schema): Schema {
    requireOrder(input, this.#order);
    return input;
  }

  protected override readColumns(): readonly string[] {
    return columnsOfOrder(this.#order);
  }

  protected selection() {
    const { users, k, times, hashes, more } = this.#heldOut;
    return (batch: RecordBatch) => {
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
      return positions.subarray(0, kept);
    };
  }
}
