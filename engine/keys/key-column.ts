import { sharedArray } from '../partition.ts';

/**
 * External ids as typed arrays: int32 unchanged; int64 as (low, high) pairs of 32-bit halves, so that no loop
 * creates a BigInt per row; utf8 as in Arrow, bytes and offsets.
 *
 *   int64, keys 1 and -2:   halves  1 0 | -2 -1
 *   utf8, keys "ab" and "":  bytes 'a' 'b'   offsets 0 2 2
 */
export type KeyColumn =
  | { readonly type: 'int32'; readonly values: Int32Array }
  | { readonly type: 'int64'; readonly halves: Int32Array }
  | { readonly type: 'utf8'; readonly offsets: Int32Array; readonly bytes: Uint8Array };

export type KeyType = KeyColumn['type'];

export type WholeKeys = Exclude<KeyColumn, { type: 'utf8' }>;

/** The 32-bit words of integer keys: one of a key of int32, two of int64. */
export function wordsOfKeys(column: WholeKeys): Int32Array {
  return column.type === 'int32' ? column.values : column.halves;
}

/** Integer keys of these words. */
export function wholeKeys(type: WholeKeys['type'], words: Int32Array): WholeKeys {
  return type === 'int32' ? { type, values: words } : { type, halves: words };
}

const widthOf = (type: WholeKeys['type']) => (type === 'int32' ? 1 : 2);

export function keyCount(column: KeyColumn): number {
  if (column.type === 'utf8') return column.offsets.length - 1;
  return wordsOfKeys(column).length / widthOf(column.type);
}

/** The key at a position as text. For messages, not for loops over rows. */
export function keyText(column: KeyColumn, position: number): string {
  if (column.type === 'int32') return String(column.values[position]);
  if (column.type === 'int64') {
    return String(
      (BigInt(column.halves[2 * position + 1]) << 32n) | BigInt(column.halves[2 * position] >>> 0),
    );
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    column.bytes.slice(column.offsets[position], column.offsets[position + 1]),
  );
}

/** A column with the keys at the given positions, in shared memory. */
export function takeKeys(column: KeyColumn, positions: ArrayLike<number>): KeyColumn {
  const count = positions.length;
  if (column.type !== 'utf8') {
    const [given, width] = [wordsOfKeys(column), widthOf(column.type)];
    const words = sharedArray(Int32Array, width * count);
    if (width === 1) for (let i = 0; i < count; i++) words[i] = given[positions[i]];
    else
      for (let i = 0; i < count; i++) {
        words[2 * i] = given[2 * positions[i]];
        words[2 * i + 1] = given[2 * positions[i] + 1];
      }
    return wholeKeys(column.type, words);
  }
  const offsets = sharedArray(Int32Array, count + 1);
  for (let i = 0; i < count; i++)
    offsets[i + 1] = offsets[i] + column.offsets[positions[i] + 1] - column.offsets[positions[i]];
  const bytes = sharedArray(Uint8Array, offsets[count]);
  for (let i = 0; i < count; i++) {
    bytes.set(
      column.bytes.subarray(column.offsets[positions[i]], column.offsets[positions[i] + 1]),
      offsets[i],
    );
  }
  return { type: 'utf8', offsets, bytes };
}

/** int32 keys as int64; others as they are. */
export function widen(column: KeyColumn): KeyColumn {
  if (column.type !== 'int32') return column;
  const halves = new Int32Array(2 * column.values.length);
  for (let i = 0; i < column.values.length; i++) {
    halves[2 * i] = column.values[i];
    halves[2 * i + 1] = column.values[i] >> 31;
  }
  return { type: 'int64', halves };
}

/** A column in shared memory whose keys the caller sets; `textBytes`: bytes of all utf8 keys. */
export function emptyKeys(type: KeyType, count: number, textBytes: number): KeyColumn {
  if (type !== 'utf8') return wholeKeys(type, sharedArray(Int32Array, widthOf(type) * count));
  return { type, offsets: sharedArray(Int32Array, count + 1), bytes: sharedArray(Uint8Array, textBytes) };
}

/** The keys [from, to) of a column, as views. */
export function sliceKeys(column: KeyColumn, from: number, to: number): KeyColumn {
  if (column.type !== 'utf8') {
    const width = widthOf(column.type);
    return wholeKeys(column.type, wordsOfKeys(column).subarray(width * from, width * to));
  }
  return { type: 'utf8', offsets: column.offsets.subarray(from, to + 1), bytes: column.bytes };
}

/** The typed arrays of a column by name, to be stored as columns of a partition. */
export function keyArrays(column: KeyColumn, prefix: string): Record<string, Int32Array | Uint8Array> {
  if (column.type === 'int32') return { [`${prefix}Values`]: column.values };
  if (column.type === 'int64') return { [`${prefix}Halves`]: column.halves };
  return { [`${prefix}Offsets`]: column.offsets, [`${prefix}Bytes`]: column.bytes };
}

export function keysFromArrays(
  columns: Readonly<Record<string, ArrayBufferView>>,
  prefix: string,
): KeyColumn {
  const values = columns[`${prefix}Values`];
  if (values) return { type: 'int32', values: values as Int32Array };
  const halves = columns[`${prefix}Halves`];
  if (halves) return { type: 'int64', halves: halves as Int32Array };
  return {
    type: 'utf8',
    offsets: columns[`${prefix}Offsets`] as Int32Array,
    bytes: columns[`${prefix}Bytes`] as Uint8Array,
  };
}

/** The result of `find` for a key that is not in the table. */
export const UNKNOWN_KEY = 0xffff_ffff;

/**
 * Assigns the numbers 0, 1, 2, ... to distinct keys, in the order in which they are first added. Columns
 * must have the table's type. Open addressing; at most 2^30 distinct keys.
 */
export interface KeyTable {
  readonly type: KeyType;
  readonly size: number;
  /** Writes the number of each key to `codes`; new keys are added. */
  add(column: KeyColumn, codes: Uint32Array): void;
  /** Writes the number of each key, or UNKNOWN_KEY. */
  find(column: KeyColumn, codes: Uint32Array): void;
  keys(): KeyColumn;
  /** Key numbers in ascending order of the keys: integers by value, utf8 by bytes (= by code point). */
  ascending(): Uint32Array;
}

/**
 * The union of two key columns, ascending and without duplicates, and the position in the union of each key
 * of both columns.
 */
export interface MergedKeys {
  readonly keys: KeyColumn;
  readonly first: Uint32Array;
  readonly second: Uint32Array;
}

/**
 * Merges two columns of one type with ascending, distinct keys (integers by value, utf8 by bytes). Linear
 * time.
 */
export function mergeKeys(left: KeyColumn, right: KeyColumn): MergedKeys {
  const [leftCount, rightCount] = [keyCount(left), keyCount(right)];
  const first = sharedArray(Uint32Array, leftCount);
  const second = sharedArray(Uint32Array, rightCount);
  let count = 0;
  for (let i = 0, j = 0; i < leftCount || j < rightCount; count++) {
    const order = i === leftCount ? 1 : j === rightCount ? -1 : compareKeys(left, i, right, j);
    if (order <= 0) first[i++] = count;
    if (order >= 0) second[j++] = count;
  }
  return { keys: placed(left, first, right, second, count), first, second };
}

/**
 * Negative if key i of the left comes before key j of the right, 0 if they are equal. Both columns have one
 * type.
 */
export function compareKeys(left: KeyColumn, i: number, right: KeyColumn, j: number): number {
  if (left.type === 'int32' && right.type === 'int32') return left.values[i] - right.values[j];
  if (left.type === 'int64' && right.type === 'int64') {
    const [a, b] = [left.halves, right.halves];
    return a[2 * i + 1] - b[2 * j + 1] || (a[2 * i] >>> 0) - (b[2 * j] >>> 0);
  }
  if (left.type === 'utf8' && right.type === 'utf8') return compareBytes(left, i, right, j);
  throw new Error(`keys of type ${left.type} cannot be merged with ${right.type}`);
}

type Utf8Keys = Extract<KeyColumn, { type: 'utf8' }>;

function compareBytes(left: Utf8Keys, i: number, right: Utf8Keys, j: number): number {
  const [from, other] = [left.offsets[i], right.offsets[j]];
  const [length, otherLength] = [left.offsets[i + 1] - from, right.offsets[j + 1] - other];
  for (let k = 0; k < length && k < otherLength; k++) {
    const difference = left.bytes[from + k] - right.bytes[other + k];
    if (difference !== 0) return difference;
  }
  return length - otherLength;
}

/**
 * A column of `count` keys: the left keys at the positions `first`, and the right keys at the positions
 * `second`.
 */
function placed(
  left: KeyColumn,
  first: Uint32Array,
  right: KeyColumn,
  second: Uint32Array,
  count: number,
): KeyColumn {
  const sources = [
    [left, first],
    [right, second],
  ] as const;
  if (left.type !== 'utf8') {
    const width = widthOf(left.type);
    const words = sharedArray(Int32Array, width * count);
    for (const [keys, places] of sources) {
      if (keys.type === 'utf8') continue;
      const own = wordsOfKeys(keys);
      for (let i = 0; i < places.length; i++)
        for (let w = 0; w < width; w++) words[width * places[i] + w] = own[width * i + w];
    }
    return wholeKeys(left.type, words);
  }
  const offsets = sharedArray(Int32Array, count + 1);
  for (const [keys, places] of sources)
    if (keys.type === 'utf8')
      places.forEach((place, i) => (offsets[place + 1] = keys.offsets[i + 1] - keys.offsets[i]));
  for (let i = 0; i < count; i++) offsets[i + 1] += offsets[i];
  const bytes = sharedArray(Uint8Array, offsets[count]);
  for (const [keys, places] of sources)
    if (keys.type === 'utf8')
      places.forEach((place, i) =>
        bytes.set(keys.bytes.subarray(keys.offsets[i], keys.offsets[i + 1]), offsets[place]),
      );
  return { type: 'utf8', offsets, bytes };
}
