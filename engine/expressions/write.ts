import { Data } from 'apache-arrow';
import { lasting } from './scratch.ts';
import { arrowTypeOf, isDecimal, isTimestamp } from './types.ts';
import { gather, halvesOf, type TextValues, type Values, wideOf } from './values.ts';

const arrays = {
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
  date: Int32Array,
};

/**
 * Computed values as an Arrow column of `length` rows; constants are repeated. `type`: the values' Arrow type.
 */
export function writeData(column: Values, length: number, type = arrowTypeOf(column.type)): Data {
  const rows = column.constant ? repeated(column, length) : column;
  if (rows.form === 'opaque' && rows.data !== undefined) return rows.data;
  if (column.type === 'null' || column.type === 'other') return new Data(type, 0, length, length);
  const nullCount = rows.valid === undefined ? 0 : length - sum(rows.valid);
  const nullBitmap = rows.valid && nullCount > 0 ? bitsOf(rows.valid) : undefined;
  const { offsets, values } = buffersOf(rows, nullCount > 0 ? rows.valid : undefined);
  return new Data(type, 0, length, nullCount, { 0: offsets, 1: values, 2: nullBitmap } as never);
}

function buffersOf(rows: Values, valid: Uint8Array | undefined): { offsets?: Int32Array; values: unknown } {
  const { type, length } = rows;
  switch (type) {
    case 'null':
    case 'other':
      return { values: undefined };
    case 'utf8':
      return encode(rows, valid);
    case 'bool':
      return { values: bitsOf(rows.form === 'bool' ? rows.values : new Uint8Array(length)) };
    case 'int64':
      return { values: wideOf(rows) };
    case 'uint64': {
      const wide = wideOf(rows);
      return { values: new BigUint64Array(wide.buffer, wide.byteOffset, length) };
    }
    default: {
      if (isTimestamp(type)) return { values: wideOf(rows) };
      if (isDecimal(type)) return { values: decimalWords(rows) };
      const Numbers = arrays[type as keyof typeof arrays];
      if (rows.form !== 'number') return { values: new Numbers(length) };
      return { values: type === 'float64' ? lasting(rows.values) : new Numbers(rows.values) };
    }
  }
}

/** Four 32-bit words for each decimal, lowest first. */
function decimalWords(rows: Values): Uint32Array {
  const words = new Uint32Array(4 * rows.length);
  if (rows.form === 'big') {
    const halves = new BigInt64Array(words.buffer);
    rows.values.forEach((value, i) => {
      halves[2 * i] = value;
      halves[2 * i + 1] = value >> 64n;
    });
    return words;
  }
  const { low, high } = halvesOf(wideOf(rows));
  for (let i = 0; i < rows.length; i++) {
    words[4 * i] = low[2 * i];
    words[4 * i + 1] = high[2 * i + 1];
    words.fill(high[2 * i + 1] >> 31, 4 * i + 2, 4 * i + 4);
  }
  return words;
}

function sum(bytes: Uint8Array): number {
  let total = 0;
  for (let i = 0; i < bytes.length; i++) total += bytes[i];
  return total;
}

export function bitsOf(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bytes.length / 64) * 8);
  for (let i = 0; i < bytes.length; i++) bits[i >> 3] |= bytes[i] << (i & 7);
  return bits;
}

/** A constant as a column of `length` rows. */
export function repeated(column: Values, length: number): Values {
  const valid = column.valid === undefined ? undefined : new Uint8Array(length).fill(column.valid[0]);
  return gather(column, new Int32Array(length), valid);
}

const encoder = new TextEncoder();

/** Encodes texts as UTF-8 with offsets. Texts of a dictionary are encoded once each. */
function encode(column: Values, valid: Uint8Array | undefined): { offsets: Int32Array; values: Uint8Array } {
  const { length } = column;
  const offsets = new Int32Array(length + 1);
  if (column.form !== 'text') return { offsets, values: new Uint8Array(0) };
  if (column.codes !== undefined) return encodeCodes(column, column.codes, valid);
  let bytes: Uint8Array<ArrayBufferLike> = new Uint8Array(Math.max(64, length * 16));
  let at = 0;
  for (let i = 0; i < length; i++) {
    if (valid === undefined || valid[i] === 1) {
      const text = column.values[i];
      if (at + text.length * 3 > bytes.length) {
        const larger = new Uint8Array(Math.max(bytes.length * 2, at + text.length * 3));
        larger.set(bytes);
        bytes = larger;
      }
      at += encoder.encodeInto(text, bytes.subarray(at)).written;
    }
    offsets[i + 1] = at;
  }
  return { offsets, values: bytes.subarray(0, at) };
}

function encodeCodes({ values, length }: TextValues, codes: Int32Array, valid: Uint8Array | undefined) {
  const encoded = values.map((text) => encoder.encode(text));
  const offsets = new Int32Array(length + 1);
  const isValid = (row: number) => valid === undefined || valid[row] === 1;
  for (let i = 0; i < length; i++) offsets[i + 1] = offsets[i] + (isValid(i) ? encoded[codes[i]].length : 0);
  const bytes = new Uint8Array(offsets[length]);
  for (let i = 0; i < length; i++) if (isValid(i)) bytes.set(encoded[codes[i]], offsets[i]);
  return { offsets, values: bytes };
}
