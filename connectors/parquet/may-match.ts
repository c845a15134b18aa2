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

function mayHold({ statistics, type }: ColumnChunkInfo, rows: number, { operator, values }: Bound): boolean {
  const { min, max, nulls } = statistics;
  if (operator === 'isNull') return nulls !== 0;
  if (operator === 'isNotNull') return nulls !== rows;
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
