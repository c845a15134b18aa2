import type { JsonObject } from '../../engine/json.ts';
import { keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyTable } from '../../engine/keys/tables/key-table.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import type { Sink, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import { TimeSizes } from './time-sizes.ts';
import { columnsOfOrder, orderedPairs, type PairOrder, requireOrder } from './pair-order.ts';

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
    const k = this.#k;
    const users = makeKeyTable(keyTypeOf(fieldOf(input.schema, this.#order.user).type, this.#order.user));
    let [times, hashes, kept, more] = [
      new Float64Array(1024 * k),
      new Uint32Array(1024 * k),
      new Uint32Array(1024),
      new Uint8Array(1024),
    ];
    const sizes = this.#order.by === 'time' ? new TimeSizes(input.schema, this.#order.timestamp) : undefined;
    let rows = 0;
    for await (const batch of input) {
      const pairs = orderedPairs(batch, this.#order);
      sizes?.add(pairs.times);
      const codes = new Uint32Array(batch.numRows);
      users.add(pairs.users, codes);
      if (users.size > kept.length) {
        const size = 2 * users.size;
        [times, hashes, kept, more] = [
          grown(times, size * k),
          grown(hashes, size * k),
          grown(kept, size),
          grown(more, size),
        ];
      }
      for (let i = 0; i < codes.length; i++) {
        const user = codes[i];
        const [time, hash] = [pairs.times[i], pairs.hashes[i]];
        const first = user * k;
        let place = first + kept[user];
        while (
          place > first &&
          (times[place - 1] < time || (times[place - 1] === time && hashes[place - 1] < hash))
        )
          place--;
        if (place > first && times[place - 1] === time && hashes[place - 1] === hash) continue;
        if (kept[user] === k) more[user] = 1;
        else kept[user]++;
        if (place === first + k) continue;
        times.copyWithin(place + 1, place, first + kept[user] - 1);
        hashes.copyWithin(place + 1, place, first + kept[user] - 1);
        [times[place], hashes[place]] = [time, hash];
      }
      rows += batch.numRows;
      ctx.events({ type: 'phase-progress', phase: this.name, done: rows, unit: 'rows' });
    }
    sizes?.report(ctx);
    return { users, k, times, hashes, kept, more };
  }
}

function grown<T extends Float64Array | Uint32Array | Uint8Array>(values: T, length: number): T {
  const larger = new (values.constructor as { new (length: number): T })(length);
  larger.set(values);
  return larger;
}
