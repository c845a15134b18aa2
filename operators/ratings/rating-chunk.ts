import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { CapacityError } from '../../engine/errors.ts';
import { concatKeys, keysFromData, keyTypeOf } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, type KeyType, sliceKeys } from '../../engine/keys/key-column.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import type { SourceSplit } from '../../engine/stream/split.ts';

/** Rows of a chunk. */
export const CHUNK_ROWS = 1 << 20;

/** Chunks of splits with an unknown number of rows, from this one on, are each twice as large as the one before, so that few are enough. */
const DOUBLING_FROM = 8;
const MOST_CHUNKS = 32;

/** Most rows of the chunk of that number among those of some splits. */
export function chunkCapacity(splits: readonly SourceSplit[], chunk: number): number {
  const known = rowsOf(splits);
  if (known !== undefined) return Math.max(1, Math.min(CHUNK_ROWS, known - chunk * CHUNK_ROWS));
  return CHUNK_ROWS * 2 ** Math.max(0, chunk - DOUBLING_FROM);
}

/** Most chunks of some splits. */
export function chunksOf(splits: readonly SourceSplit[]): number {
  const known = rowsOf(splits);
  return known === undefined ? MOST_CHUNKS : Math.ceil(known / CHUNK_ROWS);
}

function rowsOf(splits: readonly SourceSplit[]): number | undefined {
  return splits.reduce((sum: number | undefined, { rows }) => (sum === undefined || rows === undefined ? undefined : sum + rows), 0);
}

/** The columns of rows as SelectRatings gives them. */
export interface RatingTypes {
  readonly users: KeyType;
  readonly items: KeyType;
  readonly timestamps: boolean;
}

export function typesOf({ fields }: Schema): RatingTypes {
  const keyType = (name: string) => {
    const field = fields.find((candidate) => candidate.name === name);
    if (field === undefined) throw new Error(`ratings need the column ${name}`);
    return keyTypeOf(field.type, name);
  };
  return { users: keyType('user'), items: keyType('item'), timestamps: fields.some(({ name }) => name === 'timestamp') };
}

/** A batch of ratings. */
export interface RatingRows {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly ratings: Float32Array;
  readonly timestamps: Float64Array | undefined;
}

/** The columns of a batch as SelectRatings gives it; pairs without ratings have 0. */
export function ratingRows({ schema, data, numRows }: RecordBatch, types: RatingTypes): RatingRows {
  const child = (name: string): Data | undefined => data.children[schema.fields.findIndex((field) => field.name === name)];
  return {
    users: keysFromData(child('user') as Data, types.users),
    items: keysFromData(child('item') as Data, types.items),
    ratings: (child('rating')?.values as Float32Array | undefined)?.subarray(0, numRows) ?? new Float32Array(numRows),
    timestamps: types.timestamps ? (child('timestamp') as Data).values as Float64Array : undefined,
  };
}

/** Throws CapacityError for more ratings than that. */
export function requireFewer(rows: number, maximum: number): void {
  if (rows <= maximum) return;
  throw new CapacityError(`more than ${maximum.toLocaleString('en')} ratings do not fit`, { phase: 'read', advice: 'Raise memoryBudget, or train on a part of the data' });
}

/**
 * Gathers the columns of many batches into one chunk in shared memory: ids as they came, ratings beside them. Integer
 * ids are copied straight to their place; utf8 ids are kept as slices and joined when the chunk is full.
 */
export class RatingChunk {
  readonly capacity: number;
  rows = 0;
  readonly #users: IdGatherer;
  readonly #items: IdGatherer;
  readonly #ratings: Float32Array;
  readonly #timestamps: Float64Array | undefined;

  /**
   * `capacity`: most rows; memory that is never written is not taken from the system. `recycled`: a chunk of the same types and capacity
   * whose ids are no longer needed; their memory is used again.
   */
  constructor(capacity: number, { users, items, timestamps }: RatingTypes, recycled?: RatingChunk) {
    this.capacity = capacity;
    [this.#users, this.#items] = recycled ? [recycled.#users, recycled.#items] : [gatherer(users, capacity), gatherer(items, capacity)];
    this.#ratings = sharedArray(Float32Array, capacity);
    this.#timestamps = timestamps ? sharedArray(Float64Array, capacity) : undefined;
  }

  /** Takes as many of the rows from `from` on as fit; returns their number. */
  append({ users, items, ratings, timestamps }: RatingRows, from: number): number {
    const to = Math.min(ratings.length, from + this.capacity - this.rows);
    this.#users.append(sliceKeys(users, from, to), this.rows);
    this.#items.append(sliceKeys(items, from, to), this.rows);
    this.#ratings.set(ratings.subarray(from, to), this.rows);
    if (this.#timestamps && timestamps) this.#timestamps.set(timestamps.subarray(from, to), this.rows);
    this.rows += to - from;
    return to - from;
  }

  get isFull(): boolean {
    return this.rows === this.capacity;
  }

  /** The ids of the rows, once, valid until the chunk is recycled; int64 ids that all fit int32 come as int32. */
  ids(): { readonly users: KeyColumn; readonly items: KeyColumn } {
    return { users: this.#users.finish(this.rows), items: this.#items.finish(this.rows) };
  }

  /** Ratings and timestamps of the rows. */
  values(): Partition {
    const values = this.#ratings.subarray(0, this.rows);
    return { layout: 'values', rows: this.rows, columns: this.#timestamps ? { values, timestamps: this.#timestamps.subarray(0, this.rows) } : { values } };
  }
}

interface IdGatherer {
  append(keys: KeyColumn, at: number): void;
  finish(rows: number): KeyColumn;
}

function gatherer(type: KeyType, capacity: number): IdGatherer {
  if (type === 'int32') {
    const all = sharedArray(Int32Array, capacity);
    return {
      append: (keys, at) => all.set((keys as KeyColumn & { type: 'int32' }).values, at),
      finish: (rows) => ({ type, values: all.subarray(0, rows) }),
    };
  }
  if (type === 'int64') return new Int64Gatherer(capacity);
  const parts: KeyColumn[] = [];
  return { append: (keys) => void parts.push(keys), finish: () => concatKeys('utf8', parts.splice(0)) };
}

/** Keeps the halves of ids apart: most are numbers of 32 bits in a wide column, whose high halves only repeat the sign. */
class Int64Gatherer implements IdGatherer {
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  #wide = false;

  constructor(capacity: number) {
    this.#low = sharedArray(Int32Array, capacity);
    this.#high = new Int32Array(capacity);
  }

  append(keys: KeyColumn, at: number): void {
    const { halves } = keys as KeyColumn & { type: 'int64' };
    const [low, high] = [this.#low, this.#high];
    let difference = 0;
    for (let i = 0; i < halves.length; i += 2, at++) {
      low[at] = halves[i];
      high[at] = halves[i + 1];
      difference |= high[at] ^ (low[at] >> 31);
    }
    if (difference !== 0) this.#wide = true;
  }

  finish(rows: number): KeyColumn {
    const wide = this.#wide;
    this.#wide = false;
    if (!wide) return { type: 'int32', values: this.#low.subarray(0, rows) };
    const halves = sharedArray(Int32Array, 2 * rows);
    for (let row = 0; row < rows; row++) {
      halves[2 * row] = this.#low[row];
      halves[2 * row + 1] = this.#high[row];
    }
    return { type: 'int64', halves };
  }
}
