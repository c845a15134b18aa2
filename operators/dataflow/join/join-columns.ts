import { DataType, Dictionary, type Field, type Schema, Timestamp, TimeUnit } from 'apache-arrow';
import { UsageError } from '../../../engine/errors.ts';
import {
  arrowTypeOf,
  asDecimal,
  decimalOf,
  isDecimal,
  isFloat,
  isInteger,
  isTimestamp,
  type ValueType,
  valueTypeOf,
  widen,
} from '../../../engine/expressions/types.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { nearest, spelled } from '../../../engine/nearest.ts';
import type { Side } from '../../../engine/stream/operator.ts';

export const joinKinds = ['inner', 'left', 'right', 'full', 'semi', 'anti'] as const;

/**
 * The rows of a join: `inner` pairs of rows with equal keys; `left`, `right`, `full` also the rows without a
 * match of the left side, the right side or both; `semi` the rows of the left with a match; `anti` the rows
 * of the left without one.
 */
export type JoinKind = (typeof joinKinds)[number];

/** A join of two inputs, left and right. */
export interface JoinParams {
  readonly kind: JoinKind;
  /** Names of the compared columns on each side, in pairs. */
  readonly keys: Readonly<Record<Side, readonly string[]>>;
  /**
   * The columns of the times of an asOf join, of kind inner or left: of the right's rows with equal keys, a row
   * of the left matches the latest one at or before its time; `strict`: before it.
   */
  readonly asOf?: Readonly<Record<Side, string>> & { readonly strict?: boolean };
  /** Suffix for names of the right's columns that the left also has. */
  readonly suffix?: string;
  /** The side that is held in memory (build side); the other is streamed (probe side). */
  readonly build: Side;
  /** The columns of the result; default: all. */
  readonly keeps?: readonly string[];
}

export function otherSide(side: Side): Side {
  return side === 'left' ? 'right' : 'left';
}

/** True if the result has the rows of a side without a match. */
export function keepsUnmatched(kind: JoinKind, side: Side): boolean {
  return kind === side || kind === 'full';
}

/** True for kinds whose result has only rows of the left. */
export function keepsLeftOnly(kind: JoinKind): boolean {
  return kind === 'semi' || kind === 'anti';
}

/**
 * True if the streamed side may be divided and each part joined with a copy of the whole build side. That is
 * wrong if the result has the build side's unmatched rows, since a part does not know the matches in the
 * others. An asOf join always holds the right.
 */
export function mayBroadcast({ kind, build, asOf }: Pick<JoinParams, 'kind' | 'build' | 'asOf'>): boolean {
  if (asOf !== undefined) return build === 'right';
  return keepsLeftOnly(kind) ? build === 'right' : !keepsUnmatched(kind, build);
}

/** A column of a join's result, with its names in the inputs. Key columns are in both. */
export interface JoinColumn {
  readonly field: Field;
  readonly left?: string;
  readonly right?: string;
}

/** The inputs' columns. */
export type Schemas = Readonly<Record<Side, Schema>>;

/**
 * Columns of the result: keys under the left's names, then the left's other columns, then the right's. Semi
 * and anti joins have the left's columns unchanged. Throws UsageError for keys that are missing or have
 * incompatible types, and for a name that both sides have.
 */
export function joinColumns(params: JoinParams, schemas: Schemas): JoinColumn[] {
  requireKeys(params, schemas);
  const { kind, keys, keeps } = params;
  const { left, right } = schemas;
  const isKept = ({ field }: JoinColumn) => keeps === undefined || keeps.includes(field.name);
  if (keepsLeftOnly(kind)) return left.fields.map((field) => ({ field, left: field.name })).filter(isKept);
  const columns = keys.left.map((name, i) =>
    keyColumn(kind, fieldOf(left, name), fieldOf(right, keys.right[i])),
  );
  for (const field of left.fields) {
    if (keys.left.includes(field.name)) continue;
    const nullable = field.nullable || keepsUnmatched(kind, 'right');
    columns.push({ field: field.clone({ nullable }), left: field.name });
  }
  const leftNames = new Set(columns.map(({ field }) => field.name));
  for (const field of right.fields) {
    if (keys.right.includes(field.name)) continue;
    const nullable = field.nullable || keepsUnmatched(kind, 'left');
    const name = nameOfRight(field.name, leftNames, params);
    const type = withOtherId(field.type, left);
    columns.push({ field: field.clone({ name, nullable, type }), right: field.name });
  }
  requireDistinct(columns);
  return columns.filter(isKept);
}

/** The right's type, where it has a dictionary under an id that no dictionary of the left has. */
function withOtherId(type: DataType, left: Schema): DataType {
  if (!DataType.isDictionary(type)) return type;
  const ids = left.fields.map(({ type: own }) => (DataType.isDictionary(own) ? own.id : -1));
  return new Dictionary(type.dictionary, type.indices, type.id + Math.max(-1, ...ids) + 1, type.isOrdered);
}

/**
 * Columns that each input must provide for the result's columns `wanted`. A right column that gets a suffix
 * because the left has a column of the same name requires the left's column too, so that the name still gets
 * its suffix.
 */
export function requiredOf(
  params: JoinParams,
  schemas: Schemas,
  wanted: readonly string[] | undefined,
): Readonly<Record<Side, readonly string[]>> {
  const columns = joinColumns(params, schemas);
  const used = wanted === undefined ? columns : columns.filter(({ field }) => wanted.includes(field.name));
  const needed = { left: new Set<string>(), right: new Set<string>() };
  for (const { left, right } of comparedPairs(params)) {
    needed.left.add(left);
    needed.right.add(right);
  }
  for (const { field, left, right } of used) {
    if (left !== undefined) needed.left.add(left);
    if (right === undefined) continue;
    needed.right.add(right);
    if (left === undefined && field.name !== right) needed.left.add(right);
  }
  const inOrder = (side: Side) =>
    schemas[side].fields.map(({ name }) => name).filter((name) => needed[side].has(name));
  return { left: inOrder('left'), right: inOrder('right') };
}

/**
 * A key is one column of the result, although both inputs have it: its value is the right's in a right join,
 * else the left's; in a full join, the right's for a row without a left match.
 */
function keyColumn(kind: JoinParams['kind'], left: Field, right: Field): JoinColumn {
  const [own, other] = kind === 'right' ? [right, left] : [left, right];
  const nullable = own.nullable || (kind === 'full' && other.nullable);
  return { field: own.clone({ name: left.name, nullable }), left: left.name, right: right.name };
}

function nameOfRight(name: string, leftNames: ReadonlySet<string>, { suffix = '' }: JoinParams): string {
  if (!leftNames.has(name)) return name;
  if (suffix !== '') return `${name}${suffix}`;
  throw new UsageError(`join: both sides have a column "${name}"`, {
    advice: `Rename one with withColumnRenamed, leave it out with drop, or join with { suffix: '_right' }`,
  });
}

function requireDistinct(columns: readonly JoinColumn[]): void {
  const names = columns.map(({ field }) => field.name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice === undefined) return;
  throw new UsageError(`join: the result would have the column "${twice}" twice`, {
    advice: 'Choose another suffix, or rename a column with withColumnRenamed',
  });
}

/** Names of the columns that are compared with each other: the keys, and the times of an asOf join. */
export function comparedPairs({ keys, asOf }: JoinParams): Readonly<Record<Side, string>>[] {
  const pairs = keys.left.map((left, i) => ({ left, right: keys.right[i] }));
  return asOf === undefined ? pairs : [...pairs, asOf];
}

function requireKeys(params: JoinParams, schemas: Schemas): void {
  for (const pair of comparedPairs(params)) {
    const [left, right] = [keyField(schemas, 'left', pair.left), keyField(schemas, 'right', pair.right)];
    if (comparedAs(left.type) !== comparedAs(right.type)) throw differentTypes(left, right);
    requireComparable(left);
  }
}

/** The field of a key. Throws UsageError that names the existing columns. */
export function keyField(schemas: Schemas, side: Side, name: string): Field {
  const { fields } = schemas[side];
  const found = fields.find((field) => field.name === name);
  if (found !== undefined) return found;
  const names = fields.map((field) => field.name);
  throw new UsageError(`join: the ${side} side has no column "${name}"`, {
    advice: spelled(nearest(name, names), `The columns are: ${names.join(', ') || 'none'}`),
  });
}

/** The type as text, for comparison; without the time zone, since timestamps are compared in UTC. */
function comparedAs(type: DataType): string {
  if (DataType.isDecimal(type)) return `${type} of ${type.bitWidth} bits`;
  return `${DataType.isTimestamp(type) ? new Timestamp(type.unit) : type}`;
}

function differentTypes(left: Field, right: Field): UsageError {
  const [own, other] = [valueTypeOf(left.type), valueTypeOf(right.type)];
  const to = widen(own, other) ?? 'utf8';
  const { name } = other === to ? left : right;
  return new UsageError(
    `join: the key "${left.name}" of the left is ${left.type}, and "${right.name}" of the right is ${right.type}`,
    { advice: `Cast one of them to the other's type, as cast({ ${name}: '${to}' }) does` },
  );
}

function requireComparable(field: Field): void {
  if (isComparable(field)) return;
  throw new UsageError(`join: the key "${field.name}" is ${field.type}, whose values are not compared`, {
    advice: 'Join by numbers, texts, dates, times or true and false',
  });
}

function isComparable(field: Field): boolean {
  try {
    return new RowNumbers([field]).size === 0;
  } catch {
    return false;
  }
}

function fieldOf({ fields }: Schema, name: string): Field {
  return fields.find((field) => field.name === name) as Field;
}

/**
 * The type to which both keys of a pair are cast for comparison: the wider of two types of integers, floats or
 * decimals; undefined if their types are equal. Throws UsageError for types without a common exact type.
 */
export function commonKeyType(left: Field, right: Field): ValueType | undefined {
  if (comparedAs(left.type) === comparedAs(right.type)) return undefined;
  const common = exactType(left.type, right.type);
  if (common === undefined) throw differentTypes(left, right);
  return common;
}

/** The type that has the values of both types as they are; undefined if there is none. */
export function exactType(left: DataType, right: DataType): ValueType | undefined {
  const common = widen(valueTypeOf(left), valueTypeOf(right));
  return common && isExact(left, common) && isExact(right, common) ? common : undefined;
}

/** True if a key must be cast to the common type. */
export function needsCast(type: DataType, common: ValueType): boolean {
  return comparedAs(type) !== comparedAs(arrowTypeOf(common));
}

/** True if the cast keeps distinct values distinct. */
function isExact(type: DataType, to: ValueType): boolean {
  if (!needsCast(type, to)) return true;
  const from = valueTypeOf(type);
  if (from === 'other') return false;
  const [own, wanted] = [asDecimal(from), decimalOf(to)];
  if (wanted !== undefined)
    return (
      own !== undefined && own.scale <= wanted.scale && own.digits - own.scale <= wanted.digits - wanted.scale
    );
  if (isDecimal(from)) return false;
  if (isInteger(from)) return isInteger(to) && !(from === 'uint64' && to === 'int64');
  if (isFloat(from)) return to === 'float64';
  if (isTimestamp(from)) return isTimestamp(to) && unitOf(type) !== TimeUnit.NANOSECOND;
  return from === to || from === 'null';
}

function unitOf(type: DataType): TimeUnit | undefined {
  return DataType.isTimestamp(type) ? type.unit : undefined;
}
