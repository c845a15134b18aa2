import { DataType, Int32, Int64, makeData, Utf8, Vector } from 'apache-arrow';
import type { Data } from 'apache-arrow';

/** External ids as one array. */
export type IdColumn =
  | { readonly type: 'int32'; readonly values: Int32Array }
  | { readonly type: 'int64'; readonly values: BigInt64Array }
  /** String `i` is bytes[offsets[i] .. offsets[i + 1]]. */
  | { readonly type: 'utf8'; readonly offsets: Int32Array; readonly bytes: Uint8Array };

/** "int32", "int64" or "utf8"; undefined for any other type. */
export function idTypeOf(type: DataType): IdColumn['type'] | undefined {
  if (DataType.isUtf8(type)) return 'utf8';
  return DataType.isInt(type) && type.isSigned && type.bitWidth >= 32
    ? type.bitWidth === 32
      ? 'int32'
      : 'int64'
    : undefined;
}

/** Joins the chunks of a column of ids, which has no nulls. A single chunk of integers is not copied. */
export function joinIds(type: IdColumn['type'], chunks: readonly Data[]): IdColumn {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (type === 'int32')
    return { type, values: joinNumbers(new Int32Array(chunks.length === 1 ? 0 : length), chunks) };
  if (type === 'int64')
    return { type, values: joinNumbers(new BigInt64Array(chunks.length === 1 ? 0 : length), chunks) };
  const size = chunks.reduce(
    (sum, { valueOffsets, length: rows }) => sum + (rows === 0 ? 0 : valueOffsets[rows] - valueOffsets[0]),
    0,
  );
  const offsets = new Int32Array(length + 1);
  const bytes = new Uint8Array(size);
  let row = 0;
  for (const { valueOffsets, values, length: rows } of chunks) {
    if (rows === 0) continue;
    const shift = offsets[row] - valueOffsets[0];
    bytes.set(values.subarray(valueOffsets[0], valueOffsets[rows]), offsets[row]);
    for (let i = 1; i <= rows; i++) offsets[row + i] = valueOffsets[i] + shift;
    row += rows;
  }
  return { type, offsets, bytes };
}

function joinNumbers<T extends Int32Array | BigInt64Array>(target: T, chunks: readonly Data[]): T {
  if (chunks.length === 1) return chunks[0].values.subarray(0, chunks[0].length);
  let at = 0;
  for (const chunk of chunks) {
    target.set(chunk.values.subarray(0, chunk.length), at);
    at += chunk.length;
  }
  return target;
}

export function idCount(ids: IdColumn): number {
  return ids.type === 'utf8' ? ids.offsets.length - 1 : ids.values.length;
}

/** Rows `from` to `to` as Arrow data, without copying. */
export function idData(ids: IdColumn, from: number, to: number): Data {
  const length = to - from;
  if (ids.type === 'int32')
    return makeData({ type: new Int32(), length, nullCount: 0, data: ids.values.subarray(from, to) });
  if (ids.type === 'int64')
    return makeData({ type: new Int64(), length, nullCount: 0, data: ids.values.subarray(from, to) });
  const first = ids.offsets[from];
  const valueOffsets = ids.offsets.subarray(from, to + 1).map((offset) => offset - first);
  return makeData({
    type: new Utf8(),
    length,
    nullCount: 0,
    valueOffsets,
    data: ids.bytes.subarray(first, ids.offsets[to]),
  });
}

export function idVector(ids: IdColumn): Vector {
  return new Vector([idData(ids, 0, idCount(ids))]);
}

/**
 * Negative if id `a` is before id `b`, 0 if they are equal, else positive. Numbers compare by value, text by
 * bytes.
 */
export function compareIds(ids: IdColumn, a: number, b: number): number {
  if (ids.type === 'int32') return ids.values[a] - ids.values[b];
  if (ids.type === 'int64') return ids.values[a] < ids.values[b] ? -1 : Number(ids.values[a] > ids.values[b]);
  const { bytes, offsets } = ids;
  const end = Math.min(offsets[a + 1] - offsets[a], offsets[b + 1] - offsets[b]);
  for (let i = 0; i < end; i++) {
    const difference = bytes[offsets[a] + i] - bytes[offsets[b] + i];
    if (difference !== 0) return difference;
  }
  return offsets[a + 1] - offsets[a] - (offsets[b + 1] - offsets[b]);
}

/** First row whose id is not greater than the id before it; undefined if all ids ascend. */
export function firstDescent(ids: IdColumn): number | undefined {
  const count = idCount(ids);
  for (let row = 1; row < count; row++) if (compareIds(ids, row - 1, row) >= 0) return row;
  return undefined;
}

/** Row numbers sorted by id. */
export function ascendingRows(ids: IdColumn): Uint32Array {
  return Uint32Array.from({ length: idCount(ids) }, (_, row) => row).sort((a, b) => compareIds(ids, a, b));
}

/** The ids of `rows`, in that order. */
export function takeIds(ids: IdColumn, rows: Uint32Array): IdColumn {
  if (ids.type === 'int32') return { type: 'int32', values: Int32Array.from(rows, (row) => ids.values[row]) };
  if (ids.type === 'int64')
    return { type: 'int64', values: BigInt64Array.from(rows, (row) => ids.values[row]) };
  const offsets = new Int32Array(rows.length + 1);
  const bytes = new Uint8Array(ids.bytes.length);
  for (const [at, row] of rows.entries()) {
    bytes.set(ids.bytes.subarray(ids.offsets[row], ids.offsets[row + 1]), offsets[at]);
    offsets[at + 1] = offsets[at] + ids.offsets[row + 1] - ids.offsets[row];
  }
  return { type: 'utf8', offsets, bytes };
}

/** The text of one id in messages. */
export function idText(ids: IdColumn, row: number): string {
  if (ids.type !== 'utf8') return String(ids.values[row]);
  return JSON.stringify(
    Buffer.from(ids.bytes.subarray(ids.offsets[row], ids.offsets[row + 1])).toString('utf8'),
  );
}
