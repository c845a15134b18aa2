import type { JsonObject } from '../../engine/json.ts';
import { keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyTable } from '../../engine/keys/tables/key-table.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import type { Sink, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import { TimeSizes } from './time-sizes.ts';
import {
  columnsOfOrder,
  type OrderedPairs,
  orderedPairs,
  type PairOrder,
  requireOrder,
} from './pair-order.ts';

/**
 * The last k ratings of every user in an order, by the number that the table gives the user; repetitions of a
 * pair at one place count once.
 */
export interface HeldOutRatings {
  readonly users: KeyTable;
  readonly k: number;
  /** [user][k], descending: times, and hashes among those of one time. */
  readonly times: Float64Array;
  readonly hashes: Uint32Array;
  /** Ratings that are kept of each user, at most k. */
  readonly kept: Uint32Array;
  /** 1 where a user has more than k. */
  readonly more: Uint8Array;
}

/** Finds the last k ratings of every user: one pass, and memory for k ratings a user. */
export class FindHeldOut implements Sink<HeldOutRatings> {
  readonly name = 'held-out-ratings';
  readonly #order: PairOrder;
  readonly #k: number;

  constructor(order: PairOrder, k: number) {
    this.#order = order;
    this.#k = k;
  }

  describe(): JsonObject {
    return { ...this.#order, k: this.#k };
  }

  get needs(): ValueNeeds {
    return { numbers: this.#order.by === 'time' ? [this.#order.timestamp] : [], takesFaults: true };
  }

  requiredColumns(): readonly string[] {
    return columnsOfOrder(this.#order);
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<HeldOutRatings> {
    requireOrder(input.schema, this.#order);
    const { type } = fieldOf(input.schema, this.#order.user);
    const found = new LastRatings(makeKeyTable(keyTypeOf(type, this.#order.user)), this.#k);
    const sizes = this.#order.by === 'time' ? new TimeSizes(input.schema, this.#order.timestamp) : undefined;
    let rows = 0;
    for await (const batch of input) {
      const pairs = orderedPairs(batch, this.#order);
      sizes?.add(pairs.times);
      found.add(pairs, batch.numRows);
      rows += batch.numRows;
      ctx.events({ type: 'phase-progress', phase: this.name, done: rows, unit: 'rows' });
    }
    sizes?.report(ctx);
    return found.result;
  }
}

/** The last k ratings of each user among those that were added. */
class LastRatings {
  readonly #users: KeyTable;
  readonly #k: number;
  #times: Float64Array;
  #hashes: Uint32Array;
  #kept = new Uint32Array(1024);
  #more = new Uint8Array(1024);

  constructor(users: KeyTable, k: number) {
    this.#users = users;
    this.#k = k;
    this.#times = new Float64Array(1024 * k);
    this.#hashes = new Uint32Array(1024 * k);
  }

  get result(): HeldOutRatings {
    return {
      users: this.#users,
      k: this.#k,
      times: this.#times,
      hashes: this.#hashes,
      kept: this.#kept,
      more: this.#more,
    };
  }

  add({ users, times, hashes }: OrderedPairs, rows: number): void {
    const codes = new Uint32Array(rows);
    this.#users.add(users, codes);
    if (this.#users.size > this.#kept.length) this.#grow(2 * this.#users.size);
    for (let i = 0; i < rows; i++) this.#place(codes[i], times[i], hashes[i]);
  }

  /** Puts a rating among those of its user, unless k later ones are kept. */
  #place(user: number, time: number, hash: number): void {
    const [times, hashes, kept, k] = [this.#times, this.#hashes, this.#kept, this.#k];
    const first = user * k;
    let place = first + kept[user];
    while (
      place > first &&
      (times[place - 1] < time || (times[place - 1] === time && hashes[place - 1] < hash))
    )
      place--;
    if (place > first && times[place - 1] === time && hashes[place - 1] === hash) return;
    if (kept[user] === k) this.#more[user] = 1;
    else kept[user]++;
    if (place === first + k) return;
    times.copyWithin(place + 1, place, first + kept[user] - 1);
    hashes.copyWithin(place + 1, place, first + kept[user] - 1);
    times[place] = time;
    hashes[place] = hash;
  }

  #grow(users: number): void {
    this.#times = grown(this.#times, users * this.#k);
    this.#hashes = grown(this.#hashes, users * this.#k);
    this.#kept = grown(this.#kept, users);
    this.#more = grown(this.#more, users);
  }
}

function grown<T extends Float64Array | Uint32Array | Uint8Array>(values: T, length: number): T {
  const larger = new (values.constructor as { new (length: number): T })(length);
  larger.set(values);
  return larger;
}
