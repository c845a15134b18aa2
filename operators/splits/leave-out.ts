import type { RecordBatch, Schema } from 'apache-arrow';
import { progressOf } from '../../engine/events.ts';
import { formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import { type KeyTable, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import { mix32 } from '../../engine/random.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
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
      if (order.by === 'time') warnOfFuture(last, ctx);
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
  readonly #sample = new TimeSample();

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
    this.#sample.add(times, hashes);
  }

  /** Number of held-out ratings, and of those that are older than half of all ratings. */
  counts(): { readonly all: number; readonly old: number } {
    const middle = this.#sample.middle();
    let [all, old] = [0, 0];
    for (let user = 0; user < this.users.size; user++) {
      if (this.more[user] === 0) continue;
      const times = this.times.subarray(user * this.k, (user + 1) * this.k);
      all += times.length;
      for (const time of times) if (time < middle) old++;
    }
    return { all, old };
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

/** Most times in a sample. */
const MOST_TIMES = 1 << 16;

/**
 * A sample of times for their median: of ratings whose hash of item and time is below a bound, which are the
 * same in any order of rows.
 */
class TimeSample {
  #bound = 2 ** 32;
  #times: number[] = [];
  #hashes: number[] = [];

  add(times: Float64Array, hashes: Uint32Array): void {
    for (let i = 0; i < times.length; i++) {
      const hash = mix32(hashes[i], times[i] >>> 0);
      if (hash >= this.#bound) continue;
      this.#times.push(times[i]);
      this.#hashes.push(hash);
      if (this.#times.length > MOST_TIMES) this.#halve();
    }
  }

  /** A time such that about half of all are before it. */
  middle(): number {
    const sorted = Float64Array.from(this.#times).sort();
    return sorted[sorted.length >>> 1];
  }

  #halve(): void {
    this.#bound /= 2;
    const kept = this.#hashes.map((hash) => hash < this.#bound);
    this.#times = this.#times.filter((_, i) => kept[i]);
    this.#hashes = this.#hashes.filter((_, i) => kept[i]);
  }
}

/** A larger share of held-out ratings that are older than half of all ratings causes a warning. */
const MOST_OLD = 0.1;

/** Warns if users' last ratings are of very different times, so that a model is trained on the future of many. */
function warnOfFuture(heldOut: HeldOutRatings, { events }: Pick<ExecutionContext, 'events'>): void {
  const { all, old } = heldOut.counts();
  if (old <= MOST_OLD * all) return;
  events({
    type: 'warning',
    code: 'trained-on-future',
    count: old,
    text:
      `${formatCount(old)} of ${formatCount(all)} held-out ratings (${Math.floor((100 * old) / all)} %) are ` +
      `older than half of all ratings, since users' last ratings are of different times: the model is trained ` +
      `on what was rated later, and figures are better than lists of the coming days will be. For these hold ` +
      `out the ratings after one time for all users: timeSplit, or --test-fraction with --test-by time`,
  });
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
