import type { Bound, Literal } from '../../engine/expressions/expression.ts';
import type { ColumnChunkInfo, RowGroupInfo } from './footer.ts';

type Stored = number | bigint;

/** False only where the group's statistics prove that no row is within all bounds. */
export function mayMatch(group: RowGroupInfo, bounds: readonly Bound[]): boolean {
  return bounds.every((bound) => {
    const column = group.columns.find((one) => one.column === bound.column);
    return column === undefined || mayHold(column, group.rows, bound);
  });
}

/** False only where statistics of so many rows, of a row group or a page, prove that none is within a bound. */
export function mayHold(
  chunk: Pick<ColumnChunkInfo, 'statistics' | 'type'>,
  rows: number,
  bound: Bound,
): boolean {
  const { operator } = bound;
  const { nulls } = chunk.statistics;
  if (operator === 'isNull') return nulls !== 0;
  // Nothing but `<=>` is true of null.
  if (nulls === rows && operator !== '<=>') return false;
  return operator === 'isNotNull' || mayHoldValue(chunk, bound);
}

function mayHoldValue(
  { statistics, type }: Pick<ColumnChunkInfo, 'statistics' | 'type'>,
  { operator, values }: Bound,
): boolean {
  const { min, max } = statistics;
  const given = values.map(storedValue);
  if (min === undefined || max === undefined || given.includes(undefined)) return true;
  // Statistics leave out NaN, which is above all numbers.
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

/** A number as statistics have it; undefined for other types and for NaN. */
function storedValue({ type, value }: Literal): Stored | undefined {
  if (value === null || !/^(u?int(8|16|32|64)|float(32|64))$/.test(type)) return undefined;
  if (type === 'int64' || type === 'uint64') return BigInt(value);
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** A bound as plans print it: `item >= 5`. */
export function boundText({ column, operator, values }: Bound): string {
  return [column, operator, ...values.map(({ value }) => String(value))].join(' ');
}
