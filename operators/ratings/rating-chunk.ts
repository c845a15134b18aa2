import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import { keyArrays, type KeyColumn, type KeyType, sliceKeys } from '../../engine/keys/key-column.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';

/**
 * Gathers the columns of many batches into one chunk in shared memory: ids as they came, ratings beside them. Integer
 * ids are copied straight to their place; utf8 ids are kept as slices and joined when the chunk is full.
 */
export class RatingChunk {
  readonly capacity: number;
  rows = 0;
  readonly #ids: Record<'user' | 'item', IdGatherer>;
  readonly #ratings: Float32Array;
  readonly #timestamps: Float64Array | undefined;

  /** `recycled`: a chunk of the same types whose ids are no longer needed; their memory is used again. */
  constructor(capacity: number, userType: KeyType, itemType: KeyType, withTimestamps: boolean, recycled?: RatingChunk) {
    this.capacity = capacity;
    this.#ids = recycled ? recycled.#ids : { user: gatherer(userType, capacity), item: gatherer(itemType, capacity) };
    this.#ratings = sharedArray(Float32Array, capacity);
    this.#timestamps = withTimestamps ? sharedArray(Float64Array, capacity) : undefined;
  }

  /** Takes as many of the rows from `from` on as fit; returns their number. */
  append(users: KeyColumn, items: KeyColumn, ratings: Float32Array, timestamps: Float64Array | undefined, from: number): number {
    const to = Math.min(ratings.length, from + this.capacity - this.rows);
    this.#ids.user.append(sliceKeys(users, from, to), this.rows);
    this.#ids.item.append(sliceKeys(items, from, to), this.rows);
    this.#ratings.set(ratings.subarray(from, to), this.rows);
    if (this.#timestamps && timestamps) this.#timestamps.set(timestamps.subarray(from, to), this.rows);
    this.rows += to - from;
    return to - from;
  }

  get isFull(): boolean {
    return this.rows === this.capacity;
  }

  /** The ids of the rows; once only, and valid until the chunk is recycled. */
  ids(): Partition {
    const columns = { ...keyArrays(this.#ids.user.finish(this.rows), 'user'), ...keyArrays(this.#ids.item.finish(this.rows), 'item') };
    return { layout: 'key-pairs', rows: this.rows, columns };
  }

  /** Ratings and timestamps of the rows. */
  values(): { readonly values: Float32Array; readonly timestamps?: Float64Array } {
    const values = this.#ratings.subarray(0, this.rows);
    return this.#timestamps ? { values, timestamps: this.#timestamps.subarray(0, this.rows) } : { values };
  }
}

interface IdGatherer {
  append(keys: KeyColumn, at: number): void;
  finish(rows: number): KeyColumn;
}

function gatherer(type: KeyType, capacity: number): IdGatherer {
  if (type === 'utf8') {
    const parts: KeyColumn[] = [];
    return { append: (keys) => void parts.push(keys), finish: () => concatKeys('utf8', parts.splice(0)) };
  }
  const width = type === 'int64' ? 2 : 1;
  const all = sharedArray(Int32Array, capacity * width);
  return {
    append: (keys, at) => all.set(keys.type === 'int64' ? keys.halves : (keys as KeyColumn & { type: 'int32' }).values, at * width),
    finish: (rows) => {
      const used = all.subarray(0, rows * width);
      return type === 'int64' ? { type, halves: used } : { type, values: used };
    },
  };
}
