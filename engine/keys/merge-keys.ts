import { type KeyColumn, keyCount } from './key-column.ts';
import { sharedArray } from '../partition.ts';

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
  if (left.type === 'int32') {
    const values = sharedArray(Int32Array, count);
    for (const [keys, places] of sources)
      if (keys.type === 'int32') places.forEach((place, i) => (values[place] = keys.values[i]));
    return { type: 'int32', values };
  }
  if (left.type === 'int64') {
    const halves = sharedArray(Int32Array, 2 * count);
    for (const [keys, places] of sources)
      if (keys.type === 'int64')
        places.forEach((place, i) => halves.set(keys.halves.subarray(2 * i, 2 * i + 2), 2 * place));
    return { type: 'int64', halves };
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
