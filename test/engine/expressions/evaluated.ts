import {
  type Data,
  DataType,
  Field,
  makeData,
  type RecordBatch,
  RecordBatch as Batch,
  Schema,
  Struct,
  Vector,
} from 'apache-arrow';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { check, checkPredicate } from '../../../engine/expressions/check.ts';
import { evaluate } from '../../../engine/expressions/evaluate.ts';
import { decimalParser, decimalTexts } from '../../../engine/expressions/decimals.ts';
import type { Expression } from '../../../engine/expressions/expression.ts';
import { readData } from '../../../engine/expressions/read.ts';
import { selectedRows } from '../../../engine/expressions/select-rows.ts';
import { arrowTypeOf, isDecimal, isTimestamp, type ValueType } from '../../../engine/expressions/types.ts';
import { isUuid } from '../../../engine/values/value-texts.ts';
import { plainValues } from '../../../engine/values/plain-values.ts';
import { decimals, type Values } from '../../../engine/expressions/values.ts';
import { writeData } from '../../../engine/expressions/write.ts';

export type Cell = number | bigint | string | boolean | null;

/** A column of these values; dates in days, timestamps in microseconds. */
export function column(type: ValueType, cells: readonly Cell[]): Data {
  const valid = Uint8Array.from(cells, (cell) => (cell === null ? 0 : 1));
  const shape = { type, length: cells.length, valid, constant: false };
  const make = (): Values => {
    if (type === 'utf8') return { form: 'text', values: cells.map((cell) => String(cell ?? '')), ...shape };
    if (type === 'bool')
      return { form: 'bool', values: Uint8Array.from(cells, (cell) => (cell ? 1 : 0)), ...shape };
    if (type === 'uint64')
      return { form: 'wide', values: BigUint64Array.from(cells, (cell) => BigInt(cell ?? 0)), ...shape };
    if (isDecimal(type)) {
      const parse = decimalParser(type);
      const values = cells.map((cell) => parse(String(cell ?? 0)) ?? 0n);
      return decimals(values, shape);
    }
    if (type === 'int64' || isTimestamp(type))
      return { form: 'wide', values: BigInt64Array.from(cells, (cell) => BigInt(cell ?? 0)), ...shape };
    return { form: 'number', values: Float64Array.from(cells, (cell) => Number(cell ?? 0)), ...shape };
  };
  return writeData(make(), cells.length);
}

export function batchOf(columns: Readonly<Record<string, Data>>): RecordBatch {
  const fields = Object.entries(columns).map(([name, { type }]) => new Field(name, type, true));
  const children = Object.values(columns);
  const length = children[0]?.length ?? 0;
  return new Batch(new Schema(fields), makeData({ type: new Struct(fields), children, length }));
}

export const asExpression = (expression: string | Expression): Expression =>
  typeof expression === 'string' ? parseExpression(expression) : expression;

/**
 * Values of a column as plain ones: times as numbers of their unit, 64 bits as bigint, decimals as `1.50 (4,2)`,
 * UUIDs as text.
 */
export function cellsOf(data: Data): Cell[] {
  if (DataType.isDecimal(data.type)) {
    const { precision, scale } = data.type;
    const texts = decimalTexts(readData(data));
    return texts.map((text, row) => (data.getValid(row) ? `${text} (${precision},${scale})` : null));
  }
  if (isUuid(data.type)) {
    const plain = plainValues(data);
    return Array.from({ length: data.length }, (_, row) => plain(row) as Cell);
  }
  const isTime =
    data.type.typeId === arrowTypeOf('timestamp').typeId || data.type.typeId === arrowTypeOf('date').typeId;
  const vector = new Vector([data]);
  return Array.from({ length: data.length }, (_, row) => {
    if (!data.getValid(row)) return null;
    return (isTime ? data.values[row] : vector.get(row)) as Cell;
  });
}

export function evaluated(expression: string | Expression, batch: RecordBatch): Cell[] {
  const data = evaluate(check(asExpression(expression), batch.schema), batch);
  return cellsOf(data);
}

export function selected(expression: string | Expression, batch: RecordBatch): number[] {
  return Array.from(selectedRows(checkPredicate(asExpression(expression), batch.schema), batch));
}
