import { UsageError } from '../../errors.ts';
import { decimalText } from '../../keys/arrow-keys.ts';
import { numbers } from '../scratch.ts';
import { beyondDigits, scaled } from '../decimals.ts';
import {
  asDecimal,
  decimalOf,
  decimalType,
  isDecimal,
  isInteger,
  isNumber,
  isTime,
  MOST_DIGITS,
  rangeOf,
  scaleOf,
  type ValueType,
} from '../types.ts';
import { bigsOf, decimals, integers, maskOf, numbersOf, type Values } from '../values.ts';
import { timeDifference } from './dates.ts';
import {
  alike,
  type Argument,
  boolResult,
  commonType,
  exactly,
  type Functions,
  type FunctionSpec,
  type Kernel,
  literalType,
  numberResult,
  type Rows,
  type Signature,
} from './function.ts';

type Unary = (a: Float64Array, out: Float64Array) => void;
type Binary = (a: Float64Array, b: Float64Array, maskA: number, maskB: number, out: Float64Array) => void;

// Each function has its own loop: calling a function for each row costs more than most of these operations.
/* oxfmt-ignore */
const unary = {
  sqrt: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.sqrt(a[i]); },
  exp: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.exp(a[i]); },
  ln: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.log(a[i]); },
  log1p: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.log1p(a[i]); },
  abs: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.abs(a[i]); },
  negate: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = -a[i]; },
  floor: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.floor(a[i]); },
  ceil: (a, out) => { for (let i = 0; i < out.length; i++) out[i] = Math.ceil(a[i]); },
} satisfies Record<string, Unary>;

/* oxfmt-ignore */
const binary = {
  '+': (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] + b[i & mb]; },
  '-': (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] - b[i & mb]; },
  '*': (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] * b[i & mb]; },
  '/': (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] / b[i & mb]; },
  '%': (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] % b[i & mb]; },
  pow: (a, b, ma, mb, out) => { for (let i = 0; i < out.length; i++) out[i] = a[i & ma] ** b[i & mb]; },
  round: (a, b, ma, mb, out) => {
    for (let i = 0; i < out.length; i++) {
      const digits = b[i & mb];
      const scale = 10 ** Math.abs(digits);
      const value = digits < 0 ? a[i & ma] / scale : a[i & ma] * scale;
      const whole = Math.trunc(value);
      const near = Math.abs(value - whole) >= 0.5 ? whole + Math.sign(value) : whole;
      // A value beyond float64's range at this number of digits has no fraction.
      out[i] = Number.isFinite(value) ? (digits < 0 ? near * scale : near / scale) : a[i & ma];
    }
  },
} satisfies Record<string, Binary>;

/** The same for integers beyond 2^53. */
const wide: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '%': (a, b) => (b === 0n ? 0n : a % b),
  negate: (a) => -a,
  abs: (a) => (a < 0n ? -a : a),
  floor: (a) => a,
  ceil: (a) => a,
  round: (a, digits) => {
    const scale = digits < 0n ? 10n ** -digits : 1n;
    return ((a + (a < 0n ? -scale : scale) / 2n) / scale) * scale;
  },
};

/** Integers give int64, and float32 stays float32. */
function arithmetic(args: readonly Argument[]): Signature | undefined {
  const type = args.length > 0 && args.length < 3 ? commonType(args) : undefined;
  if (type === undefined || (!isNumber(type) && type !== 'null')) return undefined;
  const result = isInteger(type) ? 'int64' : type === 'null' ? 'float64' : type;
  return { args: args.map(() => result), result };
}

/** Digits that DuckDB computes with in 64 bits: it widens a result beyond them only for wider arguments. */
const SHORT_DIGITS = 18;

/**
 * Decimals of two arguments, one of them a decimal: `+` and `-` have one digit more before the point, `*` the
 * digits of both, `%` those that both need. As in DuckDB, results have at most 18 digits, or 38 if an argument
 * has more than 18; beyond them a value is an error.
 */
function ofDecimals(operator: '+' | '-' | '*' | '%', args: readonly Argument[]): Signature | undefined {
  const types = args.map((argument) => (argument.isLiteral ? literalType(argument) : argument.type));
  const shapes = types.flatMap((type) => asDecimal(type) ?? []);
  if (args.length !== 2 || shapes.length < 2 || !args.some(({ type }) => isDecimal(type))) return undefined;
  const [a, b] = shapes;
  const isProduct = operator === '*';
  const scale = isProduct ? a.scale + b.scale : Math.max(a.scale, b.scale);
  const before = Math.max(a.digits - a.scale, b.digits - b.scale) + (operator === '%' ? 0 : 1);
  const needed = isProduct ? a.digits + b.digits : before + scale;
  const isShort = Math.max(a.digits, b.digits) <= SHORT_DIGITS && (!isProduct || scale < SHORT_DIGITS);
  if (scale > MOST_DIGITS)
    throw new UsageError(
      `a product of ${types.join(' and ')} has ${scale} digits after the point, and decimals have at most ${MOST_DIGITS}`,
      { advice: 'Cast one of them to fewer digits or to float64: cast(x as decimal(18,2))' },
    );
  if (operator === '%' && needed > MOST_DIGITS) return { args: ['float64', 'float64'], result: 'float64' };
  const most = isShort && operator !== '%' ? SHORT_DIGITS : MOST_DIGITS;
  const result = decimalType({ digits: Math.min(needed, most), scale });
  return { args: isProduct ? shapes.map(decimalType) : [result, result], result };
}

const operation =
  (operator: '+' | '-' | '*' | '%'): FunctionSpec['sign'] =>
  (args) =>
    ofDecimals(operator, args) ?? pair(arithmetic)(args);

/** `round`, `floor` and `ceil` of decimals: the digits after the point that are left. */
function ofDigits(digits: number, { type }: Argument): ValueType | undefined {
  const shape = decimalOf(type);
  return shape && decimalType({ ...shape, scale: Math.min(shape.scale, Math.max(0, digits)) });
}

function wholeNumber(args: readonly Argument[]): Signature | undefined {
  const result = args.length === 1 ? ofDigits(0, args[0]) : undefined;
  return result ? { args: [args[0].type], result } : one(arithmetic)(args);
}

function rounding(args: readonly Argument[]): Signature | undefined {
  if (args.length === 0 || args.length > 2) return undefined;
  const [given] = args;
  if (isDecimal(given.type)) {
    const digits = args.length === 1 ? 0 : constantDigits(args[1]);
    const result = digits === undefined ? undefined : ofDigits(digits, given);
    return result && { args: [given.type, 'int64' as const].slice(0, args.length) as ValueType[], result };
  }
  const [value, digits] = [arithmetic([args[0]]), args.slice(1).every(({ type }) => isInteger(type))];
  return value && digits
    ? { args: args.length === 1 ? value.args : [...value.args, 'int64'], result: value.result }
    : undefined;
}

function constantDigits({ type, constant }: Argument): number | undefined {
  return isInteger(type) && constant?.form === 'number' ? constant.values[0] : undefined;
}

const float64s = (count: number): FunctionSpec['sign'] =>
  exactly(
    Array.from({ length: count }, () => 'float64' as const),
    'float64',
  );

export const arithmetics: Functions = {
  '+': { takes: 'x + y', sign: operation('+'), kernel: withTwo('+'), mayFail: true },
  '-': {
    takes: 'x - y',
    sign: (args) => timeDifference.sign(args) ?? operation('-')(args),
    kernel: (args, rows) =>
      (isTime(args[0].type) ? timeDifference : { kernel: withTwo('-') }).kernel(args, rows),
    mayFail: true,
  },
  '*': { takes: 'x * y', sign: operation('*'), kernel: withTwo('*'), mayFail: true },
  '/': { takes: 'x / y', sign: float64s(2), kernel: nullAtZero(withTwo('/')) },
  '%': { takes: 'x % y', sign: operation('%'), kernel: nullAtZero(withTwo('%')) },
  pow: { takes: '(x, y)', sign: float64s(2), kernel: withTwo('pow') },
  round: { takes: '(x, digits)', sign: rounding, kernel: roundValues, mayFail: true },
  negate: { takes: '-x', sign: one(arithmetic), kernel: withOne('negate'), mayFail: true },
  abs: { takes: '(x)', sign: one(arithmetic), kernel: withOne('abs'), mayFail: true },
  floor: { takes: '(x)', sign: wholeNumber, kernel: toWhole('floor') },
  ceil: { takes: '(x)', sign: wholeNumber, kernel: toWhole('ceil') },
  sqrt: { takes: '(x)', sign: float64s(1), kernel: withOne('sqrt') },
  exp: { takes: '(x)', sign: float64s(1), kernel: withOne('exp') },
  ln: { takes: '(x)', sign: float64s(1), kernel: nullUpTo(0, withOne('ln')) },
  log1p: { takes: '(x)', sign: float64s(1), kernel: nullUpTo(-1, withOne('log1p')) },
  isNaN: { takes: '(x)', sign: one(alike(isNumber, 'bool')), kernel: isNaNs },
};

function pair(sign: FunctionSpec['sign']): FunctionSpec['sign'] {
  return (args) => (args.length === 2 ? sign(args) : undefined);
}

function one(sign: FunctionSpec['sign']): FunctionSpec['sign'] {
  return (args) => (args.length === 1 ? sign(args) : undefined);
}

function withOne(name: keyof typeof unary): Kernel {
  return ([a], rows) => {
    if (a.form === 'wide' || a.form === 'big') return wideResult(name, a, a, rows);
    const out = numbers(rows.length);
    unary[name](numbersOf(a), out);
    return finish(out, rows);
  };
}

function withTwo(name: keyof typeof binary): Kernel {
  return ([a, b], rows) => {
    const isExact = rows.type === 'int64' || isDecimal(rows.type);
    const isWide = [a, b].some(({ form }) => form === 'wide' || form === 'big');
    if (isWide && isExact) return wideResult(name, a, b, rows);
    const out = numbers(rows.length);
    binary[name](numbersOf(a), numbersOf(b), maskOf(a), maskOf(b), out);
    return !isExact || allSafe(out) ? finish(out, rows) : wideResult(name, a, b, rows);
  };
}

function toWhole(name: 'floor' | 'ceil'): Kernel {
  return ([a], rows) =>
    isDecimal(a.type) ? scaled(a, -scaleOf(a.type), rows, name) : withOne(name)([a], rows);
}

function finish(out: Float64Array, rows: Rows): Values {
  if (rows.type === 'float32') roundToFloat32(out);
  return numberResult(rows, out);
}

const halves = new Float32Array(4096);

/** Copies through a float32 array: Math.fround is a call for each value until V8 optimizes the loop. */
function roundToFloat32(values: Float64Array): void {
  for (let from = 0; from < values.length; from += halves.length) {
    const block = values.subarray(from, from + halves.length);
    halves.set(block);
    block.set(block.length === halves.length ? halves : halves.subarray(0, block.length));
  }
}

function allSafe(values: Float64Array): boolean {
  let most = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]);
    if (size > most) most = size;
  }
  return most <= Number.MAX_SAFE_INTEGER;
}

function wideResult(name: string, left: Values, right: Values, rows: Rows): Values {
  const [a, b, maskA, maskB] = [bigsOf(left), bigsOf(right), maskOf(left), maskOf(right)];
  const { type, valid, constant } = rows;
  const [least, most] = rangeOf(type);
  const out = isDecimal(type)
    ? Array.from({ length: rows.length }, () => 0n)
    : new BigInt64Array(rows.length);
  for (let i = 0; i < out.length; i++) {
    if (valid !== undefined && valid[i] === 0) continue;
    const value = wide[name](a[i & maskA], b[i & maskB]);
    if (value >= least && value <= most) out[i] = value;
    else rows.fail(i, `${decimalText(value, scaleOf(type))} is beyond ${type}`);
  }
  return Array.isArray(out)
    ? decimals(out, { type, valid, constant })
    : integers(out, { type, valid, constant });
}

function roundValues([a, digits]: readonly Values[], rows: Rows): Values {
  if (isDecimal(a.type)) return roundDecimals(a, digits === undefined ? 0 : numbersOf(digits)[0], rows);
  const none: Values = {
    form: 'number',
    type: 'int64',
    length: 1,
    constant: true,
    values: Float64Array.of(0),
  };
  return withTwo('round')([a, digits ?? none], rows);
}

function roundDecimals(a: Values, digits: number, rows: Rows): Values {
  const rounded = scaled(a, Math.min(0, digits - scaleOf(a.type)), rows);
  if (digits >= 0) return rounded;
  const values = scaled(rounded, -digits, rows);
  beyondDigits(values).forEach((isBeyond, i) => {
    if (isBeyond === 1 && rows.valid?.[i] !== 0) rows.fail(i, `${values.values[i]} is beyond ${rows.type}`);
  });
  return values;
}

/** Null where the divisor is 0, as in Spark. */
function nullAtZero(kernel: Kernel): Kernel {
  return (args, rows) => {
    const [divisor, mask] = [numbersOf(args[1]), maskOf(args[1])];
    if (!divisor.includes(0)) return kernel(args, rows);
    const valid = rows.valid ?? new Uint8Array(rows.length).fill(1);
    for (let i = 0; i < valid.length; i++) if (divisor[i & mask] === 0) valid[i] = 0;
    return kernel(args, { ...rows, valid });
  };
}

/** Null where the argument is `bound` or below, as in Spark. */
function nullUpTo(bound: number, kernel: Kernel): Kernel {
  return (args, rows) => {
    const values = numbersOf(args[0]);
    let valid = rows.valid;
    for (let i = 0; i < values.length; i++) {
      if (values[i] > bound || values[i] !== values[i]) continue;
      valid ??= new Uint8Array(rows.length).fill(1);
      valid[i] = 0;
    }
    return kernel(args, { ...rows, valid });
  };
}

function isNaNs([a]: readonly Values[], rows: Rows): Values {
  const [values, out] = [numbersOf(a), new Uint8Array(rows.length)];
  for (let i = 0; i < out.length; i++) out[i] = values[i] === values[i] ? 0 : 1;
  return boolResult(rows, out);
}
