import { type Data, DataType } from 'apache-arrow';
import type { KeyColumn } from './key-column.ts';

/** Called for a row whose id cannot be represented exactly as a key; the row's key is then undefined. */
export type OnRefused = (row: number, reason: string) => void;

const two32 = 2 ** 32;
const HEX = '0123456789abcdef';

/**
 * The key type of ids that are converted: whole numbers of other types become int64, and 16 bytes become the
 * text of a UUID. Undefined for other types.
 */
export function convertedType(type: DataType): 'int64' | 'utf8' | undefined {
  if (DataType.isInt(type) && type.bitWidth === 64 && !type.isSigned) return 'int64';
  if (DataType.isFloat(type) && type.precision !== 0) return 'int64';
  if (DataType.isDecimal(type)) return 'int64';
  return DataType.isFixedSizeBinary(type) && type.byteWidth === 16 ? 'utf8' : undefined;
}

/**
 * Converts a column of a type for which `convertedType` is defined to keys. `onRefused` is called for rows
 * whose value cannot be represented exactly; it is not called for nulls.
 */
export function convertIds(data: Data, onRefused: OnRefused): KeyColumn {
  const { type } = data;
  const isNull = (row: number) => data.nullCount > 0 && !data.getValid(row);
  const refuse: OnRefused = (row, reason) => {
    if (!isNull(row)) onRefused(row, reason);
  };
  if (DataType.isFixedSizeBinary(type)) return uuidTexts(data.values as Uint8Array, data.length);
  if (DataType.isFloat(type))
    return wholeFloats(data.values as Float64Array, data.length, type.precision === 1 ? 24 : 53, refuse);
  if (DataType.isDecimal(type))
    return wholeDecimals(data.values as Uint32Array, data.length, type.bitWidth / 32, type.scale, refuse);
  return signedHalves(data.values as unknown as BigUint64Array, data.length, refuse);
}

function signedHalves(values: BigUint64Array, rows: number, refuse: OnRefused): KeyColumn {
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * rows);
  for (let row = 0; row < rows; row++)
    if (halves[2 * row + 1] < 0) refuse(row, `${values[row]} is beyond int64`);
  return { type: 'int64', halves };
}

/**
 * Whole numbers of more than 24 bits (float32) or 53 bits (float64) are refused: the column may have lost
 * the last digits of the id.
 */
function wholeFloats(
  values: Float64Array | Float32Array,
  rows: number,
  bits: number,
  refuse: OnRefused,
): KeyColumn {
  const halves = new Int32Array(2 * rows);
  const most = 2 ** bits;
  for (let row = 0; row < rows; row++) {
    const value = values[row];
    if (!Number.isInteger(value)) refuse(row, `${value} is not a whole number`);
    else if (Math.abs(value) >= most)
      refuse(row, `${value} is beyond 2^${bits}, where a float does not hold every whole number`);
    halves[2 * row] = value;
    halves[2 * row + 1] = Math.floor(value / two32);
  }
  return { type: 'int64', halves };
}

/** A decimal is a whole number in 32-bit words, lowest first, divided by 10^scale. */
function wholeDecimals(
  words: Uint32Array,
  rows: number,
  width: number,
  scale: number,
  refuse: OnRefused,
): KeyColumn {
  const halves = new Int32Array(2 * rows);
  const unit = 10n ** BigInt(Math.max(0, scale));
  const factor = 10n ** BigInt(Math.max(0, -scale));
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    const low = words[at] | 0;
    const high = width > 1 ? words[at + 1] | 0 : low >> 31;
    if (scale === 0 && isExtended(words, at, width, high)) {
      halves[2 * row] = low;
      halves[2 * row + 1] = high;
      continue;
    }
    const value = decimalAt(words, row, width) * factor;
    const whole = value / unit;
    if (whole * unit !== value) refuse(row, `${decimalText(value, scale)} is not a whole number`);
    else if (BigInt.asIntN(64, whole) !== whole) refuse(row, `${whole} is beyond int64`);
    halves[2 * row] = Number(BigInt.asIntN(32, whole));
    halves[2 * row + 1] = Number(BigInt.asIntN(32, whole >> 32n));
  }
  return { type: 'int64', halves };
}

/** True if a number of several words fits its lowest two: the higher words only repeat the sign. */
function isExtended(words: Uint32Array, at: number, width: number, high: number): boolean {
  for (let word = 2; word < width; word++) if ((words[at + word] | 0) !== high >> 31) return false;
  return true;
}

/** The whole number of a decimal, before it is divided by 10^scale. */
export function decimalAt(words: Uint32Array, row: number, width: number): bigint {
  let value = 0n;
  for (let word = width - 1; word >= 0; word--) value = (value << 32n) | BigInt(words[row * width + word]);
  return BigInt.asIntN(32 * width, value);
}

/** 150 with scale 2 -> "1.50" */
export function decimalText(value: bigint, scale: number): string {
  if (scale <= 0) return String(value * 10n ** BigInt(-scale));
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** 16 bytes as 8-4-4-4-12 hexadecimal digits. */
export function uuidTexts(values: Uint8Array, rows: number): KeyColumn & { readonly type: 'utf8' } {
  const bytes = new Uint8Array(36 * rows);
  let at = 0;
  for (let p = 0; p < 16 * rows; p++) {
    const i = p & 15;
    if (i === 4 || i === 6 || i === 8 || i === 10) bytes[at++] = 0x2d;
    bytes[at++] = HEX.charCodeAt(values[p] >> 4);
    bytes[at++] = HEX.charCodeAt(values[p] & 15);
  }
  return { type: 'utf8', offsets: Int32Array.from({ length: rows + 1 }, (_, row) => 36 * row), bytes };
}
