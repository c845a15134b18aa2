import { Data, DataType, type Vector } from 'apache-arrow';
import { joinData } from '../stream/join-data.ts';
import { joinDictionaries } from '../stream/join-dictionaries.ts';
import type { Bands, BandValues } from './bands.ts';

/**
 * Joins a column's chunks, with each row at its position in the bands. Undefined if values have no fixed
 * width.
 */
export function placeData(chunks: readonly Data[], bands: Bands): Data | undefined {
  const [{ type, stride }] = chunks;
  if (DataType.isDictionary(type)) {
    const { codes, dictionary } = joinDictionaries(chunks, (parts) => joinData(type.dictionary, parts));
    return placed(chunks, bands, placeValues(codes, 1, bands), dictionary);
  }
  if (DataType.isBool(type)) return placed(chunks, bands, bands.placeBits(bytesOfBools(chunks, bands.rows)));
  const isPlain =
    DataType.isInt(type) ||
    DataType.isFloat(type) ||
    DataType.isDecimal(type) ||
    DataType.isDate(type) ||
    DataType.isTimestamp(type) ||
    DataType.isTime(type) ||
    DataType.isDuration(type);
  if (!isPlain) return undefined;
  const values = chunks.map((data) => (data.values as Int32Array).subarray(0, data.length * stride));
  return placed(chunks, bands, placeValues(values, stride, bands));
}

function placed(chunks: readonly Data[], bands: Bands, values: ArrayBufferView, dictionary?: Vector): Data {
  const nullCount = chunks.reduce((sum, data) => sum + data.nullCount, 0);
  const bitmap = nullCount === 0 ? undefined : bands.placeBits(validRows(chunks, bands.rows));
  return new Data(
    chunks[0].type,
    0,
    bands.rows,
    nullCount,
    { 1: values, 2: bitmap } as never,
    undefined,
    dictionary,
  );
}

function placeValues(chunks: readonly Int32Array[], stride: number, bands: Bands): ArrayBufferView {
  const { BYTES_PER_ELEMENT: bytes, constructor } = chunks[0];
  const views = chunks.map(unsigned);
  const placed = bands.place(views, (stride * bytes) / views[0].BYTES_PER_ELEMENT);
  return new (constructor as new (buffer: ArrayBufferLike) => Int32Array)(placed.buffer);
}

/**
 * Views values as unsigned integers of the same width; values of 64 bits and more as several 32-bit words.
 */
function unsigned({ buffer, byteOffset, byteLength, BYTES_PER_ELEMENT: bytes }: Int32Array): BandValues {
  if (bytes === 1) return new Uint8Array(buffer, byteOffset, byteLength);
  return bytes === 2
    ? new Uint16Array(buffer, byteOffset, byteLength >> 1)
    : new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

function bytesOfBools(chunks: readonly Data[], rows: number): Uint8Array {
  const bytes = new Uint8Array(rows);
  let at = 0;
  for (const { values, offset, length } of chunks)
    for (let bit = offset; bit < offset + length; bit++)
      bytes[at++] = ((values as Uint8Array)[bit >> 3] >> (bit & 7)) & 1;
  return bytes;
}

function validRows(chunks: readonly Data[], rows: number): Uint8Array {
  const bytes = new Uint8Array(rows);
  let at = 0;
  for (const { nullBitmap, nullCount, offset, length } of chunks)
    for (let bit = offset; bit < offset + length; bit++)
      bytes[at++] = nullCount === 0 ? 1 : (nullBitmap[bit >> 3] >> (bit & 7)) & 1;
  return bytes;
}
