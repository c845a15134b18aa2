/**
 * Collect the user or item ids of a chunk of ratings from batches. Integers are stored as they are; text ids
 * either too, or as the number of each distinct text.
 */
import { type KeyColumn, keyCount, type KeyType, takeKeys } from '../../../engine/keys/key-column.ts';
import { keysOfTable, type NumberedKeys } from '../../../engine/keys/number-keys.ts';
import { Utf8KeyTable } from '../../../engine/keys/tables/utf8-key-table.ts';
import { sharedArray } from '../../../engine/partition.ts';

/**
 * A chunk's arrays have these capacities first, and then the chunk's maximum. So few ratings take little
 * memory: a process may load a thousand small inputs.
 */
const FIRST_ROWS = [1 << 12, 1 << 16];

/** The array, or a longer copy with room for `rows` values. A copy has at most `most` elements. */
export function withRoom<T extends Int32Array | Uint32Array | Float32Array | Float64Array>(
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
export interface IdGatherer {
  readonly textBytes: number;
  append(keys: KeyColumn, at: number): void;
  ids(rows: number): KeyColumn;
}

export function gatherer(type: KeyType, capacity: number, codes?: Uint32Array): IdGatherer {
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
export class TextNumberer implements IdGatherer {
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
