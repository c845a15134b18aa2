import { Bool, type Data, DataType, Float32, Float64, Int32, Int64, makeData } from 'apache-arrow';
import { TimestampMillisecond, Utf8 } from 'apache-arrow';
import { describeValue, type FoundColumn } from './row-kinds.ts';

/** A column to convert, of some rows. */
export interface RowColumn extends FoundColumn {
  readonly type: DataType;
  /** True if the user gave the type; then utf8 accepts any value, as text. */
  readonly isGiven: boolean;
}

/** Called for a value that the column's type cannot hold. It throws, or the value becomes null. */
export type OnFault = (row: number, reason: string) => void;

/** A column's values as Arrow data; null and undefined become nulls. */
export function columnData(rows: readonly object[], column: RowColumn, onFault: OnFault): Data {
  const nulls = new NullBits(rows.length);
  const convert = converterOf(column);
  const values: unknown[] = [];
  for (let row = 0; row < rows.length; row++) {
    const value = (rows[row] as Readonly<Record<string, unknown>>)[column.name] ?? undefined;
    const converted = value === undefined ? undefined : convert(value);
    values.push(converted);
    if (converted !== undefined) continue;
    nulls.add(row);
    if (value !== undefined) onFault(row, faultOf(column, value));
  }
  return dataOf(column.type, values, nulls);
}

/** Returns a function that converts a value to the column's type; undefined for a value that does not fit. */
function converterOf({ type, isGiven }: RowColumn): (value: unknown) => unknown {
  if (DataType.isInt(type)) return type.bitWidth === 32 ? toInt32 : toInt64;
  if (DataType.isFloat(type)) return toNumber;
  if (DataType.isBool(type)) return (value) => (typeof value === 'boolean' ? value : undefined);
  if (DataType.isTimestamp(type)) return toTime;
  return isGiven ? toText : (value) => (typeof value === 'string' ? value : undefined);
}

function toInt32(value: unknown): number | undefined {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && (number | 0) === number ? number : undefined;
}

function toInt64(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'bigint' && BigInt.asIntN(64, value) === value ? value : undefined;
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

function toTime(value: unknown): bigint | undefined {
  const time = value instanceof Date ? value.getTime() : Number.NaN;
  return Number.isNaN(time) ? undefined : BigInt(time);
}

function toText(value: unknown): string | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString();
  return typeof value === 'object' || typeof value === 'function' ? undefined : String(value);
}

/** Example: "user is the text "u7", and row 1 has the number 42" */
function faultOf({ name, first, type, isGiven }: RowColumn, value: unknown): string {
  const found = `${name} is ${describeValue(value)}`;
  if (value instanceof Date && Number.isNaN(value.getTime())) return found;
  if (isGiven || first === undefined) return `${found}, which is not of type ${String(type)}`;
  const isWider = typeof value === 'bigint' && typeof first.value === 'number';
  if (!isWider && typeof value !== typeof first.value) {
    return `${found}, and row ${first.row + 1} has ${describeValue(first.value)}`;
  }
  const problem = DataType.isFloat(type)
    ? 'is not a number'
    : `${String(type)} of the first rows cannot hold`;
  return `${found}, which ${problem}`;
}

/** Length and nulls of a column. */
interface Common {
  readonly length: number;
  readonly nullCount: number;
  readonly nullBitmap?: Uint8Array;
}

function dataOf(type: DataType, values: readonly unknown[], nulls: NullBits): Data {
  const common: Common = { length: values.length, ...nulls.parts };
  if (DataType.isInt(type) && type.bitWidth === 32) {
    const data = Int32Array.from(values as number[], (value) => value ?? 0);
    return makeData({ type: new Int32(), ...common, data });
  }
  if (DataType.isInt(type)) return makeData({ type: new Int64(), ...common, data: longs(values) });
  if (DataType.isTimestamp(type)) {
    return makeData({ type: new TimestampMillisecond(), ...common, data: longs(values) });
  }
  if (DataType.isFloat(type) && type.precision === 1) {
    return makeData({ type: new Float32(), ...common, data: Float32Array.from(values as number[]) });
  }
  if (DataType.isFloat(type)) {
    return makeData({ type: new Float64(), ...common, data: Float64Array.from(values as number[]) });
  }
  if (DataType.isBool(type)) return boolData(values, common);
  return textData(values as (string | undefined)[], common);
}

function longs(values: readonly unknown[]): BigInt64Array {
  return BigInt64Array.from(values as bigint[], (value) => value ?? 0n);
}

function boolData(values: readonly unknown[], common: Common): Data {
  const data = new Uint8Array((values.length + 7) >> 3);
  for (const [row, value] of values.entries()) if (value === true) data[row >> 3] |= 1 << (row & 7);
  return makeData({ type: new Bool(), ...common, data });
}

function textData(texts: readonly (string | undefined)[], common: Common): Data {
  const data = Buffer.from(texts.map((text) => text ?? '').join(''));
  const valueOffsets = new Int32Array(texts.length + 1);
  for (const [row, text] of texts.entries()) {
    valueOffsets[row + 1] = valueOffsets[row] + (text === undefined ? 0 : Buffer.byteLength(text));
  }
  return makeData({ type: new Utf8(), ...common, valueOffsets, data });
}

/** Arrow's null bitmap, allocated at the first null. */
class NullBits {
  #count = 0;
  #bits: Uint8Array | undefined;
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  add(row: number): void {
    this.#bits ??= new Uint8Array(((this.#rows + 63) >> 6) << 3).fill(0xff);
    this.#bits[row >> 3] &= ~(1 << (row & 7));
    this.#count++;
  }

  get parts(): { nullCount: number; nullBitmap?: Uint8Array } {
    return { nullCount: this.#count, ...(this.#bits && { nullBitmap: this.#bits }) };
  }
}
