import {
  type Binary,
  Bool,
  type Data,
  DataType,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  makeData,
  TimestampMillisecond,
  TimeUnit,
  Utf8,
} from 'apache-arrow';
import { DAY, parseTimestamp } from '../../engine/expressions/civil.ts';
import type { TextType } from '../files/format-names.ts';
import { arrowType, Nulls } from '../lines/read-column.ts';

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
  const convert = converterOf(column);
  const values: unknown[] = [];
  for (let row = 0; row < rows.length; row++) {
    const value = (rows[row] as Readonly<Record<string, unknown>>)[column.name] ?? undefined;
    const converted = value === undefined ? undefined : convert(value);
    values.push(converted);
    if (converted === undefined && value !== undefined) onFault(row, faultOf(column, value));
  }
  return flatData(column.type, values);
}

/** Returns a function that converts a value to the column's type; undefined for a value that does not fit. */
function converterOf({ type, isGiven }: Pick<RowColumn, 'type' | 'isGiven'>): (value: unknown) => unknown {
  if (DataType.isList(type)) return toList(converterOf({ type: type.children[0].type, isGiven: false }));
  if (DataType.isInt(type)) return type.bitWidth === 32 ? toInt32 : toInt64;
  if (DataType.isFloat(type)) return toNumber;
  if (DataType.isBool(type)) return (value) => (typeof value === 'boolean' ? value : undefined);
  if (DataType.isTimestamp(type)) return type.unit === TimeUnit.MILLISECOND ? toTime : toMicros;
  if (DataType.isDate(type)) return toDays;
  return isGiven ? toText : (value) => (typeof value === 'string' ? value : undefined);
}

/** Lists of converted elements, where null is undefined; undefined if an element does not fit. */
function toList(convert: (element: unknown) => unknown) {
  return (value: unknown): readonly unknown[] | undefined => {
    if (!isListed(value)) return undefined;
    const elements: unknown[] = [];
    for (const element of value as Iterable<unknown>) {
      const given = element ?? undefined;
      const converted = given === undefined ? undefined : convert(given);
      if (converted === undefined && given !== undefined) return undefined;
      elements.push(converted);
    }
    return elements;
  };
}

/** Arrays, and typed arrays of numbers; Uint8Array has bytes. */
function isListed(value: unknown): boolean {
  if (Array.isArray(value)) return true;
  return ArrayBuffer.isView(value) && !(value instanceof DataView || value instanceof Uint8Array);
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

/** Dates, and ISO texts with or without an offset, as microseconds. */
function toMicros(value: unknown): bigint | undefined {
  if (typeof value === 'string') return parseTimestamp(value);
  const time = toTime(value);
  return time === undefined ? undefined : time * 1000n;
}

function toDays(value: unknown): number | undefined {
  const micros = toMicros(value);
  return micros === undefined ? undefined : Math.floor(Number(micros) / DAY);
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

/**
 * The values of a column as Arrow data: numbers and bigints as the type stores them, true and false, texts, bytes,
 * or lists of such. Undefined is null.
 */
export function flatData(type: DataType, values: readonly unknown[]): Data {
  const length = values.length;
  const nulls = new Nulls(length);
  for (let row = 0; row < length; row++) if (values[row] === undefined) nulls.add(row);
  if (DataType.isList(type)) {
    const lists = values as readonly (readonly unknown[] | undefined)[];
    const valueOffsets = new Int32Array(length + 1);
    for (const [row, list] of lists.entries())
      valueOffsets[row + 1] = valueOffsets[row] + (list?.length ?? 0);
    const elements = lists.flatMap((list) => list ?? []);
    const child = flatData(type.children[0].type, elements);
    return makeData({ type, length, ...nulls.parts, valueOffsets, child });
  }
  if (DataType.isUtf8(type) || DataType.isBinary(type)) return textData(type, values, nulls);
  const data = DataType.isBool(type) ? new Uint8Array((length + 7) >> 3) : new type.ArrayType(length);
  for (const [row, value] of values.entries()) {
    if (DataType.isBool(type)) data[row >> 3] |= Number(value === true) << (row & 7);
    else if (value !== undefined) data[row] = value;
  }
  return makeData({ type: type as Int32, length, ...nulls.parts, data });
}

function textData(type: Utf8 | Binary, values: readonly unknown[], nulls: Nulls): Data {
  const texts = values as readonly (string | Uint8Array | undefined)[];
  const valueOffsets = new Int32Array(texts.length + 1);
  for (const [row, text] of texts.entries())
    valueOffsets[row + 1] = valueOffsets[row] + (text === undefined ? 0 : Buffer.byteLength(text));
  const data = Buffer.alloc(valueOffsets[texts.length]);
  for (const [row, text] of texts.entries()) {
    if (typeof text === 'string') data.write(text, valueOffsets[row]);
    else if (text !== undefined) data.set(text, valueOffsets[row]);
  }
  return makeData({ type: type as Utf8, length: texts.length, ...nulls.parts, valueOffsets, data });
}

/** Kinds of values as bits; a column has the bits of all of its values. Null and undefined have no bit. */
const KIND = {
  int32: 1,
  int64: 2,
  decimal: 4,
  bigint: 8,
  text: 16,
  bool: 32,
  date: 64,
  list: 128,
  nested: 256,
} as const;
const NUMERIC = KIND.int32 | KIND.int64 | KIND.decimal | KIND.bigint;

/** The values of a column in the inspected rows. */
export interface FoundColumn {
  readonly name: string;
  kinds: number;
  /** The first value that is neither null nor nested, and its row (from 0). */
  first: { readonly row: number; readonly value: unknown } | undefined;
  /** The values in its lists. */
  elements?: FoundColumn;
}

function kindOf(value: unknown): number {
  if (typeof value === 'number') {
    if ((value | 0) === value) return KIND.int32;
    return Number.isSafeInteger(value) ? KIND.int64 : KIND.decimal;
  }
  if (typeof value === 'string') return KIND.text;
  if (value === null || value === undefined) return 0;
  if (typeof value === 'bigint') return KIND.bigint;
  if (typeof value === 'boolean') return KIND.bool;
  if (isListed(value)) return KIND.list;
  return value instanceof Date ? KIND.date : KIND.nested;
}

/** Adds a row's values to the columns; a column is made when its name first appears. */
export function inspectRow(columns: Map<string, FoundColumn>, row: object, number: number): void {
  for (const name of Object.keys(row)) {
    let column = columns.get(name);
    if (column === undefined) columns.set(name, (column = { name, kinds: 0, first: undefined }));
    const value = (row as Readonly<Record<string, unknown>>)[name];
    inspectValue(column, value, number);
  }
}

function inspectValue(column: FoundColumn, value: unknown, row: number): void {
  const kind = kindOf(value);
  if (kind === 0) return;
  column.kinds |= kind;
  if (column.first === undefined && kind !== KIND.nested) column.first = { row, value };
  if (kind !== KIND.list) return;
  const elements = (column.elements ??= { name: column.name, kinds: 0, first: undefined });
  for (const element of value as Iterable<unknown>) inspectValue(elements, element, row);
}

/** True for a column of only objects, or of only lists of objects or lists, which is left out. */
export function isNested({ kinds, elements }: FoundColumn): boolean {
  if ((kinds & ~(KIND.nested | KIND.list)) !== 0 || kinds === 0) return false;
  return (kinds & KIND.nested) !== 0 || isDeep(elements);
}

function isDeep(elements: FoundColumn | undefined): boolean {
  return elements !== undefined && (elements.kinds & (KIND.nested | KIND.list)) !== 0;
}

/**
 * The Arrow type of a column: int32, int64 where a number or bigint is larger, float64 where a number has a
 * fraction, bool, utf8, a timestamp in milliseconds for Dates, or a list of such. A column that must be numeric is float64
 * and parses texts, since database drivers return decimals as text. If kinds differ, the kind of the first
 * value decides. A column of nulls is utf8.
 */
export function typeOfColumn(column: FoundColumn, given: TextType | undefined, isNumbers: boolean): DataType {
  const { kinds, first, elements } = column;
  if (given !== undefined) return arrowType(given);
  const firstKind = kindOf(first?.value);
  if (isNumbers && (kinds === 0 || (kinds & (NUMERIC | KIND.text)) !== 0)) return new Float64();
  if (firstKind === KIND.list && elements !== undefined && !isDeep(elements))
    return new List(new Field('item', typeOfColumn(elements, undefined, false), true));
  if (firstKind === KIND.date) return new TimestampMillisecond();
  if (firstKind === KIND.bool) return new Bool();
  if ((firstKind & NUMERIC) === 0) return new Utf8();
  if (kinds & KIND.decimal) return new Float64();
  return kinds & (KIND.int64 | KIND.bigint) ? new Int64() : new Int32();
}

/** A value and its kind, for a message. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') {
    return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
  }
  if (typeof value === 'bigint' || typeof value === 'number') return `the ${typeof value} ${value}`;
  if (value === null || typeof value !== 'object') return String(value);
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`;
  }
  if (Array.isArray(value)) return 'an array';
  const kind = (value.constructor as { readonly name?: string } | undefined)?.name;
  return kind === undefined || kind === 'Object' ? 'an object' : `an object (${kind})`;
}
