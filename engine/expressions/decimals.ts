/** Decimals in units of their last digit: other scales, and numbers and texts as decimals. */
import { decimalText } from '../keys/arrow-keys.ts';
import { isDecimal, rangeOf, scaleOf, type ValueType } from './types.ts';
import { bigsOf, type BigValues, decimals, type NumberValues, numbersOf, type Values } from './values.ts';

type Shape = Omit<NumberValues, 'form' | 'values' | 'length'>;
type Rounding = 'floor' | 'ceil' | 'round';

/**
 * Integers or decimals times 10^digits. Where digits are lost, they are rounded, halves away from 0 unless
 * `rounding` says otherwise.
 */
export function scaled(
  column: Values,
  digits: number,
  shape: Shape,
  rounding: Rounding = 'round',
): NumberValues | BigValues {
  const { length } = column;
  if (column.form === 'number' || column.form === 'bool') {
    const values = scaledNumbers(numbersOf(column), digits, rounding);
    const isUnsafe = (value: number, i: number) =>
      Math.abs(value) > Number.MAX_SAFE_INTEGER && column.valid?.[i] !== 0;
    if (digits <= 0 || !values.some(isUnsafe)) return { form: 'number', values, length, ...shape };
  }
  return decimals(
    Array.from(bigsOf(column), (value) => scaledBig(value, digits, rounding)),
    shape,
  );
}

/** Products and quotients of safe integers are exact here: the rest is taken off before the division. */
function scaledNumbers(values: Float64Array, digits: number, rounding: Rounding): Float64Array {
  const factor = Number(`1e${Math.abs(digits)}`);
  if (digits === 0) return values;
  if (digits > 0) return values.map((value) => value * factor);
  return values.map((value) => {
    const rest = value % factor;
    return (value - rest) / factor + step(Math.sign(rest), 2 * Math.abs(rest) >= factor, rounding);
  });
}

function scaledBig(value: bigint, digits: number, rounding: Rounding): bigint {
  const factor = 10n ** BigInt(Math.abs(digits));
  if (digits >= 0) return value * factor;
  const rest = value % factor;
  const size = rest < 0n ? -rest : rest;
  const sign = rest === 0n ? 0 : rest < 0n ? -1 : 1;
  return value / factor + BigInt(step(sign, 2n * size >= factor, rounding));
}

/** What is added to a quotient that was cut off, for the sign of its rest. */
function step(sign: number, isHalf: boolean, rounding: Rounding): number {
  if (rounding === 'round') return isHalf ? sign : 0;
  return rounding === 'floor' ? Math.min(sign, 0) : Math.max(sign, 0);
}

/** One byte per row, 1 for decimals with more digits than their type has. */
export function beyondDigits(column: NumberValues | BigValues): Uint8Array {
  const [least, most] = rangeOf(column.type);
  if (column.form === 'big')
    return Uint8Array.from(column.values, (value) => Number(value < least || value > most));
  // Rounded, a limit beyond 2^53 is still above all safe integers.
  const limit = Number(most);
  return Uint8Array.from(column.values, (value) => Number(Math.abs(value) > limit));
}

/** The numbers of a column as they are, decimals as the nearest float64. */
export function floatsOf(column: Values): Float64Array {
  if (!isDecimal(column.type)) return numbersOf(column);
  const scale = scaleOf(column.type);
  // Both are exact, so that the quotient is the nearest number; -0 becomes 0.
  if (column.form !== 'big' && scale <= 22) return numbersOf(column).map((value) => value / 10 ** scale + 0);
  return Float64Array.from(bigsOf(column), (value) => Number(`${value}e${-scale}`));
}

/** The mean of decimals whose sum counts units of their last digit. */
export function decimalMean(sum: number | bigint, count: number, scale: number): number {
  if (typeof sum === 'number') return sum / (count * 10 ** scale);
  // The digits beyond those that float64 has make the rounding right.
  const digits = (sum * 10n ** 20n) / BigInt(count);
  return Number(`${digits}e${-20 - scale}`);
}

export function decimalTexts(column: Values): string[] {
  const scale = scaleOf(column.type);
  return Array.from(bigsOf(column), (value) => decimalText(value, scale));
}

/** Numbers rounded to decimals of a type, and one byte per row, 1 for those that are none. */
export function roundedNumbers(numbers: Float64Array, shape: Shape) {
  const factor = Number(`1e${scaleOf(shape.type)}`);
  const failed = new Uint8Array(numbers.length);
  let isSafe = true;
  const values = numbers.map((number, i) => {
    const value = number * factor;
    const near = Math.abs(value) < 2 ** 52 ? Math.sign(value) * Math.floor(Math.abs(value) + 0.5) : value;
    if (!Number.isFinite(near)) failed[i] = 1;
    isSafe &&= failed[i] === 1 || Math.abs(near) <= Number.MAX_SAFE_INTEGER;
    return failed[i] === 1 ? 0 : near;
  });
  const made: NumberValues | BigValues = isSafe
    ? { form: 'number', values, length: values.length, ...shape }
    : decimals(Array.from(values, BigInt), shape);
  const beyond = beyondDigits(made);
  return { values: made, failed: failed.map((byte, i) => byte | beyond[i]) };
}

/** Reads texts such as `-1.50` and `15e-1` as units of a type's last digit; undefined for others, and beyond it. */
export function decimalParser(to: ValueType): (text: string) => bigint | undefined {
  const [scale, [least, most]] = [scaleOf(to), rangeOf(to)];
  return (text) => {
    const found = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?\s*$/i.exec(text);
    if (found === null) return undefined;
    const [, sign, whole, fraction = '', exponent = '0'] = found;
    if (whole === '' && fraction === '') return undefined;
    const size = scaledBig(BigInt(whole + fraction), scale - fraction.length + Number(exponent), 'round');
    const value = sign === '-' ? -size : size;
    return value >= least && value <= most ? value : undefined;
  };
}
