/**
 * Order-preserving words of the values of one column: comparing the words as unsigned numbers gives the
 * column's order.
 */
import { type Data, DataType, DateUnit, type Decimal, Precision } from 'apache-arrow';
import { isUuid } from '../values/value-texts.ts';

/** Writes the words of all rows of a column, ignoring nulls and direction. */
export interface WordWriter {
  readonly count: number;
  write(data: Data, words: readonly Uint32Array[]): void;
}

const SIGN = 0x80000000;
const LARGEST = 0xffffffff;

/** The writer for a fixed-width column; undefined for other types. */
export function wordWriter(type: DataType): WordWriter | undefined {
  if (DataType.isNull(type)) return { count: 0, write: () => {} };
  if (DataType.isBool(type)) return { count: 1, write: writeBools };
  if (DataType.isFloat(type)) return floatWriter(type.precision);
  if (DataType.isInt(type)) {
    const sign = type.isSigned ? SIGN : 0;
    return type.bitWidth === 64 ? longWriter(2, sign) : shortWriter(sign);
  }
  if (DataType.isDate(type)) return type.unit === DateUnit.DAY ? shortWriter(SIGN) : longWriter(2, SIGN);
  if (DataType.isTimestamp(type) || DataType.isDuration(type)) return longWriter(2, SIGN);
  if (DataType.isTime(type)) return type.bitWidth === 32 ? shortWriter(SIGN) : longWriter(2, SIGN);
  if (DataType.isDecimal(type)) return decimalWriter(type);
  if (isUuid(type)) return { count: 4, write: writeUuids };
  return undefined;
}

/** A decimal of at most 18 digits is an int64 in its two lowest words. */
function decimalWriter({ precision, bitWidth }: Decimal): WordWriter {
  if (bitWidth === 32) return shortWriter(SIGN);
  const stride = bitWidth / 32;
  return precision > 18 ? wideWriter(stride) : longWriter(stride, SIGN);
}

function shortWriter(sign: number): WordWriter {
  const write = ({ values, length }: Data, [out]: readonly Uint32Array[]) => {
    for (let row = 0; row < length; row++) out[row] = values[row] ^ sign;
  };
  return { count: 1, write };
}

/** Integers stored in `stride` words, of which the lowest two hold the value. */
function longWriter(stride: number, sign: number): WordWriter {
  const write = ({ values, length }: Data, [high, low]: readonly Uint32Array[]) => {
    const source = halvesOf(values);
    for (let row = 0, at = 0; row < length; row++, at += stride) {
      high[row] = source[at + 1] ^ sign;
      low[row] = source[at];
    }
  };
  return { count: 2, write };
}

/** Signed integers of `stride` words. */
function wideWriter(stride: number): WordWriter {
  const write = ({ values, length }: Data, words: readonly Uint32Array[]) => {
    const source = halvesOf(values);
    for (const [i, word] of words.entries()) {
      const sign = i === 0 ? SIGN : 0;
      for (let row = 0, at = stride - 1 - i; row < length; row++, at += stride) word[row] = source[at] ^ sign;
    }
  };
  return { count: stride, write };
}

/** The order of the bytes is that of the texts. */
function writeUuids({ values, length }: Data, words: readonly Uint32Array[]): void {
  const { buffer, byteOffset, byteLength } = values as Uint8Array;
  const bytes = new DataView(buffer, byteOffset, byteLength);
  for (const [i, word] of words.entries())
    for (let row = 0; row < length; row++) word[row] = bytes.getUint32(16 * row + 4 * i);
}

function halvesOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

function writeBools({ values, offset, length }: Data, [out]: readonly Uint32Array[]): void {
  for (let row = 0, bit = offset; row < length; row++, bit++) out[row] = (values[bit >> 3] >> (bit & 7)) & 1;
}

function floatWriter(precision: Precision): WordWriter {
  if (precision === Precision.DOUBLE) return { count: 2, write: writeDoubles };
  return precision === Precision.SINGLE
    ? { count: 1, write: writeSingles }
    : { count: 1, write: writeHalves };
}

/**
 * Writes float32 values. The bits of negative floats decrease as the value increases, so they are inverted.
 * NaN sorts as the largest number, and -0 equals 0.
 */
function writeSingles({ values, length }: Data, [out]: readonly Uint32Array[]): void {
  const bits = halvesOf(values);
  for (let row = 0; row < length; row++) {
    const value = values[row];
    if (value !== value) out[row] = LARGEST;
    else out[row] = value === 0 ? SIGN : value < 0 ? ~bits[row] : bits[row] ^ SIGN;
  }
}

function writeDoubles({ values, length }: Data, [high, low]: readonly Uint32Array[]): void {
  const bits = halvesOf(values);
  for (let row = 0; row < length; row++) {
    const value = values[row];
    const nan = value !== value;
    const negative = value < 0;
    const top = value === 0 ? 0 : bits[2 * row + 1];
    high[row] = nan ? LARGEST : negative ? ~top : top ^ SIGN;
    low[row] = nan ? LARGEST : negative ? ~bits[2 * row] : bits[2 * row];
  }
}

/** Float16 values are stored as their 16 bits. */
function writeHalves({ values, length }: Data, [out]: readonly Uint32Array[]): void {
  for (let row = 0; row < length; row++) {
    const bits = values[row];
    const size = bits & 0x7fff;
    if (size > 0x7c00) out[row] = 0xffff;
    else out[row] = bits > 0x8000 ? ~bits & 0xffff : size | 0x8000;
  }
}
