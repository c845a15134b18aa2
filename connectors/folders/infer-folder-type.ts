import { parseTimestamp } from '../../engine/expressions/civil.ts';
import { javaText } from './folder-texts.ts';

/** The narrowest of the inferred types that holds all values; null fits every type. */
export function inferredType(
  values: readonly (string | null)[],
): 'int32' | 'int64' | 'float64' | 'date' | 'utf8' {
  const known = [...new Set(values.filter((value) => value !== null))];
  if (known.length === 0) return 'utf8';
  if (known.every((value) => /^-?\d{1,19}$/.test(value))) return integerType(known);
  if (isFloats(known)) return 'float64';
  return known.every(isDate) ? 'date' : 'utf8';
}

function integerType(known: readonly string[]): 'int32' | 'int64' | 'utf8' {
  const integers = known.map(BigInt);
  // If both 007 and 7 occur, leading zeros distinguish values (perhaps ids), so they must stay text.
  if (new Set(integers).size < known.length) return 'utf8';
  if (integers.every((value) => BigInt.asIntN(32, value) === value)) return 'int32';
  return integers.every((value) => BigInt.asIntN(64, value) === value) ? 'int64' : 'utf8';
}

/** True if all values are numbers in the form in which programs write them. Versions such as 1.10 are not. */
function isFloats(known: readonly string[]): boolean {
  const numbers = known.map(Number);
  return (
    known.some((value) => /\d/.test(value)) &&
    known.every((value, i) => [javaText(numbers[i]), String(numbers[i])].includes(value)) &&
    new Set(numbers).size === known.length
  );
}

function isDate(value: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(value) && parseTimestamp(value) !== undefined;
}
