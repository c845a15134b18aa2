import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { CapacityError } from '../../../engine/errors.ts';
import { keysFromData, keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import {
  type KeyColumn,
  keyCount,
  type KeyType,
  sliceKeys,
  takeKeys,
} from '../../../engine/keys/key-column.ts';
import {
  keysOfTable,
  type KeysSummary,
  type NumberedKeys,
} from '../../../engine/keys/tables/make-key-table.ts';
import { Utf8KeyTable } from '../../../engine/keys/tables/utf8-key-table.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { SourceSplit } from '../../../engine/stream/split.ts';
import { blockLimit } from '../../planner/sizes.ts';

export interface NumberedSide {
  readonly keys: PartitionRef;
  readonly summary: KeysSummary;
}

/**
 * A chunk of ratings whose users and items are numbered within the chunk (`codes`). `users` and `items` name
 * the partitions with the ids of these numbers.
 */
export interface NumberedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  readonly values: PartitionRef;
  readonly users: NumberedSide;
  readonly items: NumberedSide;
}

/** One chunk of rows: its own codes, and maps from these codes to positions among all sorted ids. */
export interface CodedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  /** `values` Float32[rows] and, if needed for duplicates, `timestamps` Float64[rows]. */
  readonly values: PartitionRef;
  /** Absent if the codes are positions already. */
  readonly userMap?: PartitionRef;
  readonly itemMap?: PartitionRef;
}

/** Rows of a chunk. */
const CHUNK_ROWS = 1 << 20;

/** A chunk is full when its text ids have about this number of bytes. */
const CHUNK_BYTES = 1 << 24;
/**
 * A split may have more chunks than its known rows require: at most this number more. After DOUBLING of
 * these, each one is twice as large as the previous one, so any number of rows fits.
 */
const MORE_CHUNKS = 32;
const DOUBLING = 8;

/** Limits at which a chunk counts as full: its rows, and the bytes of its text ids. */
export interface ChunkLimits {
  readonly rows: number;
  readonly bytes: number;
}

/** Limits of a chunk of some splits, by its number. */
export function chunkLimits(splits: readonly SourceSplit[], chunk: number): ChunkLimits {
  const factor = 2 ** Math.max(0, chunk - knownChunks(splits) - DOUBLING);
  return { rows: factor * CHUNK_ROWS, bytes: factor * CHUNK_BYTES };
}

/** Most chunks that some splits can have. */
export function chunksOf(splits: readonly SourceSplit[]): number {
  return knownChunks(splits) + MORE_CHUNKS;
}

function knownChunks(splits: readonly SourceSplit[]): number {
  return Math.ceil(splits.reduce((sum, { rows = 0 }) => sum + rows, 0) / CHUNK_ROWS);
}

/** Column types of SelectRatings' result. */
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
  return {
    users: keyType('user'),
    items: keyType('item'),
    timestamps: fields.some(({ name }) => name === 'timestamp'),
  };
}

/** A batch of ratings. */
export interface RatingRows {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly ratings: Float32Array;
  readonly timestamps: Float64Array | undefined;
}

/** The columns of a batch from SelectRatings; pairs without ratings get 0. */
export function ratingRows({ schema, data, numRows }: RecordBatch, types: RatingTypes): RatingRows {
  const child = (name: string): Data | undefined =>
    data.children[schema.fields.findIndex((field) => field.name === name)];
  return {
    users: keysFromData(child('user') as Data, types.users),
    items: keysFromData(child('item') as Data, types.items),
    ratings:
      (child('rating')?.values as Float32Array | undefined)?.subarray(0, numRows) ??
      new Float32Array(numRows),
    timestamps: types.timestamps ? ((child('timestamp') as Data).values as Float64Array) : undefined,
  };
}

/**
 * Throws CapacityError if there are more than `maximum` ratings: the memory budget, or one block, cannot hold
 * more.
 */
export function requireFewer(rows: number, maximum: number): void {
  if (rows <= maximum) return;
  const most = maximum.toLocaleString('en');
  if (maximum !== blockLimit.ratings)
    throw new CapacityError(`more than ${most} ratings do not fit`, {
      phase: 'read',
      advice: 'Raise memoryBudget, or train on a part of the data',
    });
  throw new CapacityError(
    `more than ${most} ratings do not fit into one block, which tune, cross-validation and updates of a model need`,
    { phase: 'load', advice: 'Train by ALS or SGD, which take ratings in parts, or use a part of the data' },
  );
}

/** Memory for the codes of a chunk's ids and for its ratings; all arrays have the same length. */
export interface ChunkPlace {
  readonly users: Uint32Array;
  readonly items: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Collects the rows of many batches in one chunk in shared memory: the ids, not yet numbered, and the
 * ratings.
 */
export class RatingChunk {
  readonly limits: ChunkLimits;
  readonly types: RatingTypes;
  readonly place: ChunkPlace | undefined;
  rows = 0;
  readonly #users: IdGatherer;
  readonly #items: IdGatherer;
  #ratings: Float32Array = new Float32Array(0);
  #timestamps: Float64Array | undefined;

  /**
   * - `numbersText`: give text ids their numbers on arrival, so that each distinct text is stored once (see
   *   `numbered`).
   * - `recycled`: a chunk of the same types and limits whose ids are no longer needed; its memory is reused.
   * - `place`: memory for the chunk's ratings and codes, with room for its maximum of rows. 32-bit ids are
   *   stored in the codes' memory until they are numbered.
   */
  constructor(
    limits: ChunkLimits,
    types: RatingTypes,
    numbersText: boolean,
    { recycled, place }: { readonly recycled?: RatingChunk; readonly place?: ChunkPlace } = {},
  ) {
    [this.limits, this.types, this.place] = [limits, types, place];
    const ids = (type: KeyType, codes?: Uint32Array) =>
      type === 'utf8' && numbersText
        ? new TextNumberer(limits.rows, codes)
        : gatherer(type, limits.rows, codes);
    [this.#users, this.#items] = recycled
      ? [recycled.#users, recycled.#items]
      : [ids(types.users, place?.users), ids(types.items, place?.items)];
    if (place) this.#ratings = place.values;
    this.#timestamps = types.timestamps ? new Float64Array(0) : undefined;
  }

  /** Adds rows from `from` on until the chunk is full. Returns the number of rows added. */
  append({ users, items, ratings, timestamps }: RatingRows, from: number): number {
    const to = Math.min(ratings.length, from + this.limits.rows - this.rows);
    this.#users.append(sliceKeys(users, from, to), this.rows);
    this.#items.append(sliceKeys(items, from, to), this.rows);
    const rows = this.rows + to - from;
    this.#ratings = withRoom(this.#ratings, rows, this.limits.rows);
    this.#ratings.set(ratings.subarray(from, to), this.rows);
    if (this.#timestamps) this.#timestamps = withRoom(this.#timestamps, rows, this.limits.rows);
    if (this.#timestamps && timestamps) this.#timestamps.set(timestamps.subarray(from, to), this.rows);
    this.rows = rows;
    return to - from;
  }

  get isFull(): boolean {
    return (
      this.rows === this.limits.rows || this.#users.textBytes + this.#items.textBytes >= this.limits.bytes
    );
  }

  /** Ids of the rows, valid until the chunk is refilled or recycled. */
  ids(): { readonly users: KeyColumn; readonly items: KeyColumn } {
    return { users: this.#users.ids(this.rows), items: this.#items.ids(this.rows) };
  }

  /**
   * Numbers the chunk's ids from 0 and writes each row's number to `codes`, which has one element for each
   * row. If the chunk has a `place`, `codes` is the start of its arrays. `number` numbers the ids that were
   * not numbered on arrival.
   */
  numbered(
    codes: Pick<ChunkPlace, 'users' | 'items'>,
    number: NumberColumn,
  ): { readonly users: NumberedKeys; readonly items: NumberedKeys } {
    return {
      users: numberedBy(this.#users, codes.users, number),
      items: numberedBy(this.#items, codes.items, number),
    };
  }

  /** Ratings and timestamps of the rows, valid until the chunk is refilled. */
  values(): Partition {
    const own = <T extends Float32Array | Float64Array>(values: T) => values.subarray(0, this.rows);
    return {
      layout: 'values',
      rows: this.rows,
      columns: this.#timestamps
        ? { values: own(this.#ratings), timestamps: own(this.#timestamps) }
        : { values: own(this.#ratings) },
    };
  }
}

/**
 * Numbers the distinct ids of a column and writes each row's number to `codes`. 32-bit ids may be in the same
 * memory as `codes`, which overwrites them.
 */
type NumberColumn = (column: KeyColumn, codes: Uint32Array) => NumberedKeys;

function numberedBy(ids: IdGatherer, codes: Uint32Array, number: NumberColumn): NumberedKeys {
  return ids instanceof TextNumberer ? ids.numbered(codes) : number(ids.ids(codes.length), codes);
}

/**
 * A chunk's arrays have these capacities first, and then the chunk's maximum. So few ratings take little
 * memory: a process may load a thousand small inputs.
 */
const FIRST_ROWS = [1 << 12, 1 << 16];

/** The array, or a longer copy with room for `rows` values. A copy has at most `most` elements. */
function withRoom<T extends Int32Array | Uint32Array | Float32Array | Float64Array>(
  values: T,
  rows: number,
  most: number,
): T {
  if (rows <= values.length) return values;
  const type = values.constructor as {
    new (buffer: ArrayBufferLike): T;
    readonly BYTES_PER_ELEMENT: number;
  };
  const larger = sharedArray(type, Math.min(most, FIRST_ROWS.find((room) => room >= rows) ?? most));
  larger.set(values);
  return larger;
}

/** Collects the ids of one side (users or items) of a chunk. Writing at row 0 starts a new chunk. */
interface IdGatherer {
  readonly textBytes: number;
  append(keys: KeyColumn, at: number): void;
  ids(rows: number): KeyColumn;
}

function gatherer(type: KeyType, capacity: number, codes?: Uint32Array): IdGatherer {
  if (type === 'utf8') return new TextGatherer(capacity);
  const width = type === 'int64' ? 2 : 1;
  let all =
    codes && type === 'int32'
      ? new Int32Array(codes.buffer, codes.byteOffset, codes.length)
      : new Int32Array(0);
  return {
    textBytes: 0,
    append: (keys, at) => {
      const values = keys.type === 'int32' ? keys.values : (keys as KeyColumn & { type: 'int64' }).halves;
      all = withRoom(all, width * at + values.length, width * capacity);
      all.set(values, width * at);
    },
    ids: (rows) =>
      type === 'int64'
        ? { type, halves: all.subarray(0, 2 * rows) }
        : { type, values: all.subarray(0, rows) },
  };
}

class TextGatherer implements IdGatherer {
  readonly #capacity: number;
  #offsets = new Int32Array(1);
  #bytes = sharedArray(Uint8Array, 1 << 12);
  textBytes = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  append(keys: KeyColumn, at: number): void {
    const { offsets, bytes } = keys as KeyColumn & { type: 'utf8' };
    if (at === 0) this.textBytes = 0;
    const [first, last] = [offsets[0], offsets[offsets.length - 1]];
    const shift = this.textBytes - first;
    this.textBytes += last - first;
    if (this.textBytes > this.#bytes.length) {
      const larger = sharedArray(Uint8Array, Math.max(this.textBytes, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(bytes.subarray(first, last), first + shift);
    this.#offsets = withRoom(this.#offsets, at + offsets.length, this.#capacity + 1);
    for (let i = 1; i < offsets.length; i++) this.#offsets[at + i] = offsets[i] + shift;
  }

  ids(rows: number): KeyColumn {
    return {
      type: 'utf8',
      offsets: this.#offsets.subarray(0, rows + 1),
      bytes: this.#bytes.subarray(0, this.textBytes),
    };
  }
}

/** Numbers text ids as they arrive. Each distinct text of a chunk is stored once. */
class TextNumberer implements IdGatherer {
  readonly #capacity: number;
  #codes: Uint32Array;
  #table = new Utf8KeyTable();

  constructor(capacity: number, codes: Uint32Array = new Uint32Array(0)) {
    [this.#capacity, this.#codes] = [capacity, codes];
  }

  get textBytes(): number {
    return this.#table.textBytes;
  }

  append(keys: KeyColumn, at: number): void {
    if (at === 0) this.#table = new Utf8KeyTable();
    this.#codes = withRoom(this.#codes, at + keyCount(keys), this.#capacity);
    this.#table.add(keys, this.#codes.subarray(at, at + keyCount(keys)));
  }

  ids(rows: number): KeyColumn {
    return takeKeys(this.#table.keys(), this.#codes.subarray(0, rows));
  }

  numbered(codes: Uint32Array): NumberedKeys {
    if (codes.buffer !== this.#codes.buffer) codes.set(this.#codes.subarray(0, codes.length));
    return keysOfTable(this.#table, codes);
  }
}
