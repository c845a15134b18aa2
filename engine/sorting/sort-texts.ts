import { type Data, DataType, type Vector } from 'apache-arrow';
import { dictionaryValues } from '../stream/dictionary-values.ts';

/**
 * Texts of a column by row: `bytes` from `offsets[i]` to `offsets[i + 1]`, where i is the row, or
 * `index[row]` if given.
 */
export interface SortTexts {
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array | Float64Array;
  readonly index?: Int32Array;
  /** Number of first bytes of each text to ignore; default: 0. */
  readonly skip?: number;
}

/**
 * Words of a text: two with its first 8 bytes, one with its length, which is `LONG_TEXT` if more bytes
 * follow.
 */
export const TEXT_WORDS = 3;
export const LONG_TEXT = 9;

/** True for text and binary columns, which are ordered by their bytes. */
export function isText(type: DataType): boolean {
  return (
    DataType.isUtf8(type) ||
    DataType.isLargeUtf8(type) ||
    DataType.isBinary(type) ||
    DataType.isLargeBinary(type)
  );
}

export function textsOf(data: Data): SortTexts {
  const given: Int32Array | Float64Array | BigInt64Array = data.valueOffsets;
  const offsets = given instanceof BigInt64Array ? Float64Array.from(given, Number) : given;
  return { bytes: data.values, offsets };
}

/** Texts of rows whose codes refer to a dictionary. */
export function textsOfDictionary(data: Data, dictionary: Vector): SortTexts {
  const codes: Int32Array | BigInt64Array = data.values;
  const index = codes instanceof Int32Array ? codes : Int32Array.from(codes.subarray(0, data.length), Number);
  return { ...textsOf(dictionaryValues(dictionary)), index };
}

export function writeTexts(
  { bytes, offsets, index, skip = 0 }: SortTexts,
  length: number,
  [high, low, size]: readonly Uint32Array[],
): void {
  for (let row = 0; row < length; row++) {
    const text = index === undefined ? row : index[row];
    const start = offsets[text] + skip;
    const count = Math.min(offsets[text + 1] - start, LONG_TEXT);
    let first = 0;
    let second = 0;
    for (let i = 0; i < 4 && i < count; i++) first |= bytes[start + i] << (24 - 8 * i);
    for (let i = 4; i < 8 && i < count; i++) second |= bytes[start + i] << (56 - 8 * i);
    high[row] = first;
    low[row] = second;
    size[row] = count;
  }
}

/** Compares two texts by all of their bytes. */
export function compareTexts(a: SortTexts, rowA: number, b: SortTexts, rowB: number): number {
  const textA = a.index === undefined ? rowA : a.index[rowA];
  const textB = b.index === undefined ? rowB : b.index[rowB];
  const startA = a.offsets[textA] + (a.skip ?? 0);
  const startB = b.offsets[textB] + (b.skip ?? 0);
  const lengthA = a.offsets[textA + 1] - startA;
  const lengthB = b.offsets[textB + 1] - startB;
  const common = Math.min(lengthA, lengthB);
  for (let i = 0; i < common; i++) {
    const difference = a.bytes[startA + i] - b.bytes[startB + i];
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}

/** The texts of some rows, without their first `skip` bytes. */
export function textsOfRows(texts: SortTexts, rows: Uint32Array, skip: number): SortTexts {
  const index = new Int32Array(rows.length);
  for (let i = 0; i < index.length; i++)
    index[i] = texts.index === undefined ? rows[i] : texts.index[rows[i]];
  return { ...texts, index, skip };
}

/** The length of the common prefix of all texts, in bytes. */
export function commonBytes({ bytes, offsets, index = new Int32Array(1), skip = 0 }: SortTexts): number {
  const start = offsets[index[0]] + skip;
  let common = offsets[index[0] + 1] - start;
  for (let i = 1; i < index.length; i++) {
    const own = offsets[index[i]] + skip;
    common = Math.min(common, offsets[index[i] + 1] - own);
    let same = 0;
    while (same < common && bytes[start + same] === bytes[own + same]) same++;
    common = same;
  }
  return common;
}

/**
 * Writes one number for each row, by which the rows are in the order of the prefix: 1 if the text starts with
 * the prefix, 0 if it sorts before such texts, 2 if after.
 */
export function writeSides(
  { bytes, offsets, index }: SortTexts,
  prefix: Uint8Array,
  sides: Uint32Array,
  descending: boolean,
): void {
  for (let row = 0; row < sides.length; row++) {
    const text = index === undefined ? row : index[row];
    const start = offsets[text];
    const length = Math.min(offsets[text + 1] - start, prefix.length);
    let same = 0;
    while (same < length && bytes[start + same] === prefix[same]) same++;
    const isAfter = same < length && bytes[start + same] > prefix[same];
    sides[row] = same === prefix.length ? 1 : isAfter !== descending ? 2 : 0;
  }
}
