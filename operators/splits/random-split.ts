import type { RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { mix32 } from '../../engine/random.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import { RowFilter } from '../dataflow/row-operator.ts';
import { usualNames } from '../ratings/rows/column-names.ts';
import { pairColumns, type PairOptions, keyTypeOfColumn } from '../ratings/rows/columns.ts';
import { requireTimes, timesOf } from './time-split.ts';

export interface SplitOptions extends PairOptions {
  readonly seed: number;
  /** Keeps all ratings of an item, or of a user, in one part: some items are held out whole. */
  readonly whole?: 'items' | 'users';
}

/**
 * One part of a random split: keeps the rows whose hash of (user, item, seed), or with `whole` of (item, seed)
 * or (user, seed), scaled to [0, 1), is in [from, to). The parts are disjoint, cover everything and don't depend on the order of rows; repetitions of a pair
 * are in the same part. With `outside`, keeps the other rows instead.
 */
export class RandomSplit extends RowFilter {
  readonly name = 'random-split';
  readonly passesNeeds = true;
  readonly isRowwise = true;
  readonly #from: number;
  readonly #to: number;
  readonly #options: SplitOptions;
  readonly #keep: 'inside' | 'outside';

  constructor(from: number, to: number, options: SplitOptions, keep: 'inside' | 'outside' = 'inside') {
    super([from, to, options, keep]);
    this.#from = from;
    this.#to = to;
    this.#options = options;
    this.#keep = keep;
  }

  get needs(): ValueNeeds {
    const { userCol = usualNames.user, itemCol = usualNames.item } = this.#options;
    return { numbers: [], takesFaults: false, texts: [userCol, itemCol] };
  }

  describe(): JsonObject {
    return {
      from: this.#from,
      to: this.#to,
      ...(this.#keep === 'outside' ? { keep: this.#keep } : {}),
      ...this.#options,
    };
  }

  override outputSchema(input: Schema): Schema {
    pairColumns(input, this.#options);
    return input;
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const { userCol, itemCol } = this.#options;
    if (wanted === undefined || userCol === undefined || itemCol === undefined) return undefined;
    return [...new Set([...wanted, userCol, itemCol])];
  }

  protected selection(input: Schema) {
    const [user, item] = pairColumns(input, this.#options);
    const low = Math.round(this.#from * 2 ** 32);
    const high = Math.round(this.#to * 2 ** 32);
    const inside = this.#keep === 'inside';
    const { seed, whole } = this.#options;
    const columns = whole === undefined ? [user, item] : [whole === 'items' ? item : user];
    return (batch: RecordBatch) => {
      const hashes = rowHashes(batch, columns, seed);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < hashes.length; i++)
        if ((hashes[i] >= low && hashes[i] < high) === inside) positions[kept++] = i;
      return positions.subarray(0, kept);
    };
  }
}

/** Bounds [from, to) of each part of a split by weights, as fractions of 1. */
export function splitBounds(weights: readonly number[]): readonly (readonly [number, number])[] {
  if (!Array.isArray(weights))
    throw new UsageError(
      `split weights must be an array of numbers such as [0.9, 0.1], got ${shown(weights)}`,
    );
  if (weights.length === 0 || !weights.every((weight) => Number.isFinite(weight) && weight > 0))
    throw new UsageError(`split weights must be positive numbers, got [${weights.map(shown).join(', ')}]`);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let reached = 0;
  return weights.map((weight, i) => {
    const from = reached / sum;
    reached += weight;
    return [from, i === weights.length - 1 ? 1 : reached / sum] as const;
  });
}

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
      hashes: rowHashes(batch, [order.user, order.item], order.seed),
    };
  const items = keyHashes(keysOf(batch, order.item));
  return {
    users,
    times: timesOf(batch, order.timestamp),
    hashes: items.low.map((low, i) => mix32(low, items.high[i])),
  };
}

/** A hash of the seed and the ids in these columns for each row. */
function rowHashes(batch: RecordBatch, columns: readonly string[], seed: number): Uint32Array {
  const hashes = new Uint32Array(batch.numRows).fill(seed);
  for (const name of columns) {
    const { low, high } = keyHashes(keysOf(batch, name));
    for (let i = 0; i < hashes.length; i++) hashes[i] = mix32(mix32(hashes[i], low[i]), high[i]);
  }
  return hashes;
}

function keysOf(batch: RecordBatch, name: string): KeyColumn {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
  // A value that is not an exact id gets an arbitrary hash here; the consumer of the rows reports it.
  return keysFromData(data, keyTypeOf(data.type, name), () => {});
}
