import { parseTimestamp } from '../../engine/expressions/civil.ts';
import type { Bound, Literal } from '../../engine/expressions/expression.ts';
import type { ColumnChunkInfo, RowGroupInfo } from './footer.ts';

type Stored = number | bigint;
const MICROS_OF_DAY = 86_400_000_000n;

/** False only if the group's statistics prove that no row is within all bounds. */
export function mayMatch(group: RowGroupInfo, bounds: readonly Bound[]): boolean {
  return bounds.every((bound) => {
    const column = group.columns.find((one) => one.column === bound.column);
    return column === undefined || mayHold(column, group.rows, bound);
  });
}

/** The properties of a column chunk, or of a page, that are compared with bounds. */
type Bounded = Pick<ColumnChunkInfo, 'statistics' | 'type' | 'timeUnit'>;

/**
 * False only if the statistics of `rows` rows (a row group or a page) prove that no row is within the bound.
 */
export function mayHold(chunk: Bounded, rows: number, bound: Bound): boolean {
  const { operator } = bound;
  const { nulls, min } = chunk.statistics;
  if (operator === 'isNull') return nulls !== 0;
  // Only `<=>` can be true for null. A column with a minimum is not all null, even if its null count says so.
  if (nulls === rows && min === undefined && operator !== '<=>') return false;
  return operator === 'isNotNull' || mayHoldValue(chunk, bound);
}

function mayHoldValue(chunk: Bounded, { operator, values }: Bound): boolean {
  const { type, timeUnit, statistics } = chunk;
  const [min, max] = [statistics.min, statistics.max].map((value) => comparable(value, timeUnit));
  const given = values.map((value) => storedValue(value, chunk));
  if (min === undefined || max === undefined || given.includes(undefined)) return true;
  // Statistics do not count NaN, which is greater than all numbers, so the maximum of floats does not limit
  // it.
  const isFloat = type === 'float' || type === 'double';
  const numbers = given as Stored[];
  switch (operator) {
    case '=':
    case 'in':
      return numbers.some((value) => value >= min && value <= max);
    case '<':
      return min < numbers[0];
    case '<=':
      return min <= numbers[0];
    case '>':
      return isFloat || max > numbers[0];
    case '>=':
      return isFloat || max >= numbers[0];
    default:
      return true;
  }
}

/** A value of statistics as expressions represent it: timestamps in microseconds, rounded down. */
function comparable(value: Stored | undefined, timeUnit: Bounded['timeUnit']): Stored | undefined {
  if (timeUnit === undefined || typeof value !== 'bigint') return value;
  if (timeUnit === 'ms') return value * 1000n;
  return timeUnit === 'us' ? value : (value - (((value % 1000n) + 1000n) % 1000n)) / 1000n;
}

/**
 * A constant in the form in which it is compared with a column's statistics; undefined for NaN, and for types
 * whose order in statistics is not known.
 */
function storedValue({ type, value }: Literal, chunk: Bounded): Stored | undefined {
  if (value === null) return undefined;
  if (type === 'timestamp') return chunk.timeUnit && parseTimestamp(String(value));
  if (type === 'date') return chunk.type === 'int32' ? daysOf(String(value)) : undefined;
  if (!/^(u?int(8|16|32|64)|float(32|64))$/.test(type)) return undefined;
  if (type === 'int64' || type === 'uint64') return BigInt(value);
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

function daysOf(date: string): bigint | undefined {
  const micros = parseTimestamp(date);
  return micros === undefined ? undefined : micros / MICROS_OF_DAY;
}

/** A bound for plans: `item >= 5`. */
export function boundText({ column, operator, values }: Bound): string {
  return [column, operator, ...values.map(({ value }) => String(value))].join(' ');
}
