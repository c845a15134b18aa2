import { isUtf8 } from 'node:buffer';
import { DataType } from 'apache-arrow';
import type { Data, Vector } from 'apache-arrow';

/**
 * Checks a decoded column: every value lies inside the buffers, and text is UTF-8. apache-arrow itself trusts
 * the metadata and gives undefined for values beyond a buffer. Throws an Error that names the fault.
 *
 */
export function checkData(data: Data, length: number): void {
  const { type } = data;
  if (data.length !== length || data.offset !== 0)
    throw new Error(`it has ${data.length} values, need ${length}`);
  if (DataType.isNull(type)) throw new Error('it is of type Null, which cannot be read');
  checkNulls(data);
  if (DataType.isDictionary(type)) return checkDictionary(data);
  if (
    DataType.isUtf8(type) ||
    DataType.isBinary(type) ||
    DataType.isLargeUtf8(type) ||
    DataType.isLargeBinary(type)
  ) {
    const { first, last } = checkOffsets(data, data.values.length);
    if (
      (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) &&
      !isUtf8((data.values as Uint8Array).subarray(first, last))
    )
      throw new Error('its text is not UTF-8');
    return;
  }
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) return checkViews(data);
  if (DataType.isList(type))
    return checkData(
      data.children[0],
      atLeast(data.children[0], checkOffsets(data, data.children[0].length).last),
    );
  if (DataType.isFixedSizeList(type))
    return checkData(data.children[0], atLeast(data.children[0], length * type.listSize));
  if (DataType.isStruct(type)) {
    for (const child of data.children) checkData(child, atLeast(child, length));
    return;
  }
  if (DataType.isBool(type)) return need(data.values.length, (length + 7) >> 3);
  if (
    DataType.isInt(type) ||
    DataType.isFloat(type) ||
    DataType.isTimestamp(type) ||
    DataType.isDate(type) ||
    DataType.isTime(type) ||
    DataType.isDuration(type) ||
    DataType.isDecimal(type) ||
    DataType.isFixedSizeBinary(type)
  ) {
    return need(
      (data.values as Uint8Array).byteLength,
      length * bytesOf(type, (data.values as Uint8Array).BYTES_PER_ELEMENT),
    );
  }
  throw new Error(`it is of type ${String(type)}, which cannot be read`);
}

function bytesOf(type: DataType, element: number): number {
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  return DataType.isDecimal(type) ? type.bitWidth / 8 : element;
}

function need(have: number, bytes: number): void {
  if (have < bytes) throw new Error(`its values take ${bytes} bytes, and ${have} are there`);
}

/** Checks the length of a child, which may be longer than the part in use. */
function atLeast(child: Data, length: number): number {
  if (child.length < length) throw new Error(`a nested column has ${child.length} values, need ${length}`);
  return child.length;
}

function checkNulls({ nullBitmap, nullCount, length }: Data): void {
  const bits = nullBitmap?.length ?? 0;
  if (bits === 0) {
    if (nullCount > 0) throw new Error(`its null count is ${nullCount}, and its bitmap of nulls is missing`);
    return;
  }
  if (bits < (length + 7) >> 3)
    throw new Error(`its bitmap of nulls takes ${(length + 7) >> 3} bytes, and ${bits} are there`);
  let valid = 0;
  for (let byte = 0; byte < length >> 3; byte++) valid += ones(nullBitmap[byte]);
  if (length & 7) valid += ones(nullBitmap[length >> 3] & ((1 << (length & 7)) - 1));
  if (length - valid !== nullCount)
    throw new Error(`its null count is ${nullCount}, and its bitmap of nulls has ${length - valid}`);
}

function ones(byte: number): number {
  const pairs = byte - ((byte >> 1) & 0x55);
  const quads = (pairs & 0x33) + ((pairs >> 2) & 0x33);
  return (quads + (quads >> 4)) & 0x0f;
}

function checkOffsets(data: Data, most: number): { first: number; last: number } {
  const offsets = data.valueOffsets as Int32Array | BigInt64Array;
  // A column without rows may come without offsets.
  if (data.length === 0 && offsets.length === 0) return { first: 0, last: 0 };
  if (offsets.length <= data.length)
    throw new Error(`it has ${offsets.length} offsets, need ${data.length + 1}`);
  for (let i = 0; i < data.length; i++)
    if (offsets[i] > offsets[i + 1])
      throw new Error(`its offsets fall from ${offsets[i]} to ${offsets[i + 1]} in row ${i + 1}`);
  const [first, last] = [Number(offsets[0]), Number(offsets[data.length])];
  if (first < 0 || last > most)
    throw new Error(`its offsets go from ${first} to ${last}, and ${most} values are there`);
  return { first, last };
}

/**
 * Checks views. Each takes sixteen bytes: length, then the bytes themselves or (first four, buffer, offset).
 */
function checkViews(data: Data): void {
  const bytes = data.values as unknown as Uint8Array;
  const buffers = (data as unknown as { variadicBuffers?: readonly Uint8Array[] }).variadicBuffers ?? [];
  need(bytes.byteLength, 16 * data.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let row = 0; row < data.length; row++) {
    const length = view.getInt32(16 * row, true);
    const [buffer, offset] = [view.getInt32(16 * row + 8, true), view.getInt32(16 * row + 12, true)];
    if (length >= 0 && length <= 12) continue;
    if (length < 0 || !(offset >= 0 && offset + length <= (buffers[buffer]?.length ?? -1)))
      throw new Error(`the text of row ${row + 1} lies outside its buffers`);
  }
}

function checkDictionary(data: Data): void {
  const dictionary = (data as unknown as { dictionary?: Vector }).dictionary;
  if (dictionary === undefined) throw new Error('its dictionary is missing');
  for (const part of dictionary.data) checkData(part, part.length);
  const codes = data.values as Int32Array | BigInt64Array;
  if (codes.length < data.length) throw new Error(`it has ${codes.length} codes, need ${data.length}`);
  for (let row = 0; row < data.length; row++) {
    const code = Number(codes[row]);
    if (!(code >= 0 && code < dictionary.length) && data.getValid(row))
      throw new Error(`row ${row + 1} has code ${code} of ${dictionary.length}`);
  }
}
