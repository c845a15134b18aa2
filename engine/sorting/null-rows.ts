import { type Data, DataType } from 'apache-arrow';
import { hasNulls } from '../keys/arrow-keys.ts';

/**
 * Returns a byte for each row of all chunks: 1 if the row, or its dictionary entry, is null. Undefined if no
 * row is null.
 */
export function nullRows(chunks: readonly Data[]): Uint8Array | undefined {
  if (!chunks.some((data) => DataType.isNull(data.type) || hasNulls(data))) return undefined;
  const nulls = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let row = 0;
  for (const data of chunks) {
    markNulls(data, nulls.subarray(row, row + data.length));
    row += data.length;
  }
  return nulls;
}

function markNulls(data: Data, nulls: Uint8Array): void {
  const { type, nullBitmap, offset, nullCount, dictionary } = data;
  if (DataType.isNull(type)) nulls.fill(1);
  else if (nullCount > 0)
    for (let row = 0, bit = offset; row < nulls.length; row++, bit++)
      nulls[row] = (~nullBitmap[bit >> 3] >> (bit & 7)) & 1;
  if (dictionary === undefined || dictionary.nullCount === 0) return;
  const entries = Uint8Array.from({ length: dictionary.length }, (_, i) => (dictionary.isValid(i) ? 0 : 1));
  const codes: Int32Array | BigInt64Array = data.values;
  for (let row = 0; row < nulls.length; row++) nulls[row] |= entries[Number(codes[row])];
}
