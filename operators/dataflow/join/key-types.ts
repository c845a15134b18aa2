import { DataType, type Field, TimeUnit } from 'apache-arrow';
import {
  arrowTypeOf,
  isFloat,
  isInteger,
  type ValueType,
  valueTypeOf,
  widen,
} from '../../../engine/expressions/types.ts';
import { comparedAs, differentTypes } from './join-columns.ts';

/**
 * The type to which both keys of a pair are cast for comparison: the wider of two integer or float types;
 * undefined if their types are equal. Throws UsageError for types without a common exact type.
 */
export function commonKeyType(left: Field, right: Field): ValueType | undefined {
  if (comparedAs(left.type) === comparedAs(right.type)) return undefined;
  const [own, other] = [valueTypeOf(left.type), valueTypeOf(right.type)];
  const common = widen(own, other);
  if (common === undefined || !isExact(left.type, common) || !isExact(right.type, common))
    throw differentTypes(left, right);
  return common;
}

/** True if a key must be cast to the common type. */
export function needsCast(type: DataType, common: ValueType): boolean {
  return comparedAs(type) !== comparedAs(arrowTypeOf(common));
}

/** True if the cast keeps distinct values distinct. */
function isExact(type: DataType, to: ValueType): boolean {
  if (!needsCast(type, to)) return true;
  const from = valueTypeOf(type);
  if (DataType.isDecimal(type) || from === 'other') return false;
  if (isInteger(from)) return isInteger(to) && !(from === 'uint64' && to === 'int64');
  if (isFloat(from)) return to === 'float64';
  if (from === 'timestamp') return to === 'timestamp' && unitOf(type) !== TimeUnit.NANOSECOND;
  return from === to || from === 'null';
}

function unitOf(type: DataType): TimeUnit | undefined {
  return DataType.isTimestamp(type) ? type.unit : undefined;
}
