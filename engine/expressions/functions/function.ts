import type { DataType } from 'apache-arrow';
import { decimalType, isDecimal, isInteger, isNumber, isTime, type ValueType, widen } from '../types.ts';
import { castValues } from '../cast.ts';
import { parseTimestamp } from '../civil.ts';
import { type BoolValues, bools, type NumberValues, type TextValues, type Values } from '../values.ts';

/** An argument as it is known before any row is read: its type, and its value if it is constant. */
export interface Argument {
  readonly type: ValueType;
  /** The Arrow type of lists, structs and others. */
  readonly arrow?: DataType;
  readonly constant?: Values;
  /** A literal takes the type of its neighbours. */
  readonly isLiteral: boolean;
}

export interface Signature {
  /** The types to which the arguments are converted. */
  readonly args: readonly ValueType[];
  readonly result: ValueType;
  /** The Arrow type of a result of type `other`. */
  readonly arrow?: DataType;
}

/** The rows of a call; a kernel returns one value for each. */
export interface Rows {
  readonly length: number;
  readonly type: ValueType;
  readonly constant: boolean;
  /** Rows without a null argument. A kernel may reuse this buffer for its result, and clear bytes in it. */
  readonly valid?: Uint8Array;
  /** Reports a row that has no result; throws if its value matters. */
  readonly fail: (row: number, message: string) => void;
}

export type Kernel = (args: readonly Values[], rows: Rows) => Values;

export interface FunctionSpec {
  /** The arguments, as shown in errors and docs: `(x, digits)`. */
  readonly takes: string;
  /** The signature for these arguments; undefined if the function does not accept them. */
  readonly sign: (args: readonly Argument[]) => Signature | undefined;
  /** Computes the values of all rows; null arguments give null. */
  readonly kernel: Kernel;
  /** The kernel also handles nulls (`rows.valid` is undefined). Otherwise a null argument gives null. */
  readonly seesNulls?: true;
  /** The kernel may call `fail`. */
  readonly mayFail?: true;
}

export type Functions = Readonly<Record<string, FunctionSpec>>;

/**
 * The smallest type that holds the values of all arguments. Literals take the type of the others if possible.
 * Decimals have at most `digits` digits.
 */
export function commonType(args: readonly Argument[], digits?: number): ValueType | undefined {
  const others = args.filter(({ isLiteral }) => !isLiteral);
  const typed = others.length === 0 ? args : others;
  let common: ValueType | undefined = 'null';
  for (const { type } of typed) common = common && widen(common, type, digits);
  if (others.length === 0) return common;
  for (const argument of args) if (argument.isLiteral) common = common && adapted(common, argument, digits);
  return common;
}

/** The type of a literal next to decimals: 0.25 is decimal(3,2) and 5 an int32, as in SQL. */
export function literalType({ type, constant }: Argument): ValueType {
  const text = constant?.form === 'number' ? String(constant.values[0]) : '';
  if (type === 'int64') return constant && castValues(constant, 'int32').failed?.[0] ? type : 'int32';
  // More digits than 15 come from computations: 0.1 + 0.2 is 0.30000000000000004.
  const [, digits, fraction = ''] = /^-?(\d{1,15}(?:\.(\d{1,15}))?)$/.exec(text) ?? [];
  return digits === undefined || digits.length > 16 || type !== 'float64'
    ? type
    : decimalType({ digits: digits.replace('.', '').length, scale: fraction.length });
}

function adapted(common: ValueType, argument: Argument, digits?: number): ValueType | undefined {
  const { type, constant } = argument;
  if (isDecimal(common) && isNumber(type)) return widen(common, literalType(argument), digits);
  if (common === 'float32' && isNumber(type)) return common;
  if (isInteger(common) && isInteger(type) && constant && !castValues(constant, common).failed?.[0])
    return common;
  if (type !== 'utf8' || !isTime(common)) return widen(common, type);
  const text = constant?.form === 'text' ? constant.values[0] : '';
  if (parseTimestamp(text) === undefined) return undefined;
  return /\d:\d/.test(text) && common === 'date' ? 'timestamp' : common;
}

/** The signature of functions whose arguments all have one type, which must pass `accepts`. */
export function alike(
  accepts: (type: ValueType) => boolean,
  result?: ValueType,
): (args: readonly Argument[]) => Signature | undefined {
  return (args) => {
    const type = commonType(args);
    if (type === undefined || type === 'other' || !(accepts(type) || type === 'null')) return undefined;
    return { args: args.map(() => type), result: result ?? type };
  };
}

/**
 * The signature of functions with arguments of these types; numbers and literals are converted. Arguments
 * marked `?` are optional.
 */
export function exactly(
  types: readonly (ValueType | `${ValueType}?`)[],
  result: ValueType,
): (args: readonly Argument[]) => Signature | undefined {
  const wanted = types.map((type) => type.replace('?', '') as ValueType);
  const least = types.filter((type) => !type.endsWith('?')).length;
  return (args) => {
    if (args.length < least || args.length > types.length) return undefined;
    const fits = args.every(({ type }, i) => type === 'null' || widen(type, wanted[i]) === wanted[i]);
    return fits ? { args: wanted.slice(0, args.length), result } : undefined;
  };
}

export const numberResult = (rows: Rows, values: Float64Array, valid = rows.valid): NumberValues => ({
  form: 'number',
  type: rows.type,
  length: values.length,
  constant: rows.constant,
  values,
  valid,
});

export const boolResult = (rows: Rows, values: Uint8Array, valid = rows.valid): BoolValues =>
  bools(values, { valid, constant: rows.constant });

export const textResult = (rows: Rows, values: readonly string[]): TextValues => ({
  form: 'text',
  type: 'utf8',
  length: values.length,
  constant: rows.constant,
  values,
  valid: rows.valid,
});
