import { isInteger, isNumber, type ValueType, widen } from '../types.ts';
import { castValues } from '../cast.ts';
import { parseTimestamp } from '../civil.ts';
import { type BoolValues, bools, type NumberValues, type TextValues, type Values } from '../values.ts';

/** An argument as far as it is known before any row: its type, and its value if it is constant. */
export interface Argument {
  readonly type: ValueType;
  readonly constant?: Values;
  /** The type of a literal gives way to its neighbours' types. */
  readonly isLiteral: boolean;
}

export interface Signature {
  /** The types to which the arguments are converted. */
  readonly args: readonly ValueType[];
  readonly result: ValueType;
}

/** The rows of a call: kernels give as many values. */
export interface Rows {
  readonly length: number;
  readonly type: ValueType;
  readonly constant: boolean;
  /** Rows without a null argument. A kernel may take its buffer for its result, and clear bytes in it. */
  readonly valid?: Uint8Array;
  /** Reports a row that has no value; throws if its value matters. */
  readonly fail: (row: number, message: string) => void;
}

export type Kernel = (args: readonly Values[], rows: Rows) => Values;

export interface FunctionSpec {
  /** The arguments, as errors and docs have them: `(x, digits)`. */
  readonly takes: string;
  /** The types for these arguments; undefined where the function takes no such ones. */
  readonly sign: (args: readonly Argument[]) => Signature | undefined;
  /** Values of all rows; null arguments give nulls. */
  readonly kernel: Kernel;
  /** The kernel also decides about nulls (`rows.valid` is undefined). Else a null argument gives null. */
  readonly seesNulls?: true;
  /** The kernel may call `fail`. */
  readonly mayFail?: true;
}

export type Functions = Readonly<Record<string, FunctionSpec>>;

/** The type in which values of all arguments fit. Literals take the type of the others where they can. */
export function commonType(args: readonly Argument[]): ValueType | undefined {
  const others = args.filter(({ isLiteral }) => !isLiteral);
  const typed = others.length === 0 ? args : others;
  let common: ValueType | undefined = 'null';
  for (const { type } of typed) common = common && widen(common, type);
  if (others.length === 0) return common;
  for (const argument of args) if (argument.isLiteral) common = common && adapted(common, argument);
  return common;
}

function adapted(common: ValueType, { type, constant }: Argument): ValueType | undefined {
  if (common === 'float32' && isNumber(type)) return common;
  if (isInteger(common) && isInteger(type) && constant && !castValues(constant, common).failed?.[0])
    return common;
  if (type !== 'utf8' || (common !== 'date' && common !== 'timestamp')) return widen(common, type);
  const text = constant?.form === 'text' ? constant.values[0] : '';
  if (parseTimestamp(text) === undefined) return undefined;
  return /\d:\d/.test(text) ? 'timestamp' : common;
}

/** All arguments of one type that `takes` accepts. */
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

/** Arguments of these types, to which numbers and literals are converted; those with `?` may be missing. */
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
