import { Bool, type DataType, Float64, Int32, Int64, TimestampMillisecond, Utf8 } from 'apache-arrow';
import { arrowType } from '../lines/arrow-type.ts';
import type { TextType } from '../lines/text-type.ts';

/** Kinds of values as bits; a column has the bits of all of its values. Null and undefined have no bit. */
export const KIND = {
  int32: 1,
  int64: 2,
  decimal: 4,
  bigint: 8,
  text: 16,
  bool: 32,
  date: 64,
  nested: 128,
} as const;
const NUMERIC = KIND.int32 | KIND.int64 | KIND.decimal | KIND.bigint;

/** The values of a column in the inspected rows. */
export interface FoundColumn {
  readonly name: string;
  kinds: number;
  /** The first value that is neither null nor nested, and its row (from 0). */
  first: { readonly row: number; readonly value: unknown } | undefined;
}

export function kindOf(value: unknown): number {
  if (typeof value === 'number') {
    if ((value | 0) === value) return KIND.int32;
    return Number.isSafeInteger(value) ? KIND.int64 : KIND.decimal;
  }
  if (typeof value === 'string') return KIND.text;
  if (value === null || value === undefined) return 0;
  if (typeof value === 'bigint') return KIND.bigint;
  if (typeof value === 'boolean') return KIND.bool;
  return value instanceof Date ? KIND.date : KIND.nested;
}

/** Adds a row's values to the columns; a column is made when its name first appears. */
export function inspectRow(columns: Map<string, FoundColumn>, row: object, number: number): void {
  for (const name of Object.keys(row)) {
    let column = columns.get(name);
    if (column === undefined) columns.set(name, (column = { name, kinds: 0, first: undefined }));
    const value = (row as Readonly<Record<string, unknown>>)[name];
    const kind = kindOf(value);
    if (kind === 0) continue;
    column.kinds |= kind;
    if (column.first === undefined && kind !== KIND.nested) column.first = { row: number, value };
  }
}

/** True for a column of only objects and arrays, which is left out. */
export function isNested({ kinds }: FoundColumn): boolean {
  return kinds === KIND.nested;
}

/**
 * The Arrow type of a column: int32, int64 where a number or bigint is larger, float64 where a number has a
 * fraction, bool, utf8, or a timestamp in milliseconds for Dates. A column that must be numeric is float64
 * and parses texts, since database drivers return decimals as text. If kinds differ, the kind of the first
 * value decides. A column of nulls is utf8.
 */
export function typeOfColumn(column: FoundColumn, given: TextType | undefined, isNumbers: boolean): DataType {
  const { kinds, first } = column;
  if (given !== undefined) return arrowType(given);
  const firstKind = kindOf(first?.value);
  if (isNumbers && (kinds === 0 || (kinds & (NUMERIC | KIND.text)) !== 0)) return new Float64();
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
