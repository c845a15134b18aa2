import { DataType, Field, Int32, Int64, makeData, RecordBatch, Schema } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { originOf } from '../../engine/stream/stream.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import type { CopyLayout } from './copies.ts';

/** The columns of the copies: the source's columns, with int64 ids if int32 is too narrow. */
export function copiedSchema(schema: Schema, { user, item }: CopyLayout): Schema {
  const wider = (field: Field) =>
    [user, item].some(({ column, wide }) => wide && column === field.name) && !isInteger(field.type, 64);
  if (!schema.fields.some(wider)) return schema;
  return new Schema(
    schema.fields.map((field) => (wider(field) ? new Field(field.name, new Int64(), field.nullable) : field)),
  );
}

/** The batch with the ids of copy `copy`; other columns are unchanged. `schema` is from `copiedSchema`. */
export function copyBatch(
  batch: RecordBatch,
  schema: Schema,
  { user, item }: CopyLayout,
  copy: number,
): RecordBatch {
  const shifts = new Map([
    [user.column, Math.floor(copy / item.copies) * user.span],
    [item.column, (copy % item.copies) * item.span],
  ]);
  const sameTypes = schema.fields.every(
    ({ type }, index) => String(type) === String(batch.schema.fields[index].type),
  );
  if (sameTypes && [...shifts.values()].every((shift) => shift === 0)) return batch;
  const children = schema.fields.map(({ name, type }, index) => {
    const shift = shifts.get(name);
    return shift === undefined ? batch.data.children[index] : shiftIds(batch, index, type, shift);
  });
  return batchOf(schema, batch.numRows, children);
}

/** Adds `shift` to ids, as int32 or int64. */
function shiftIds(batch: RecordBatch, index: number, type: DataType, shift: number): Data {
  const ids = batch.data.children[index];
  const length = batch.numRows;
  if (ids.nullCount > 0) throw nullId(batch, index);
  const values = ids.values as Int32Array | BigInt64Array;
  if (isInteger(type, 32))
    return makeData({
      type: new Int32(),
      length,
      nullCount: 0,
      data: (values as Int32Array).subarray(0, length).map((id) => id + shift),
    });
  return makeData({ type: new Int64(), length, nullCount: 0, data: addToIds(values, length, shift) });
}

/**
 * True for signed integers of that width. Types from files are not instances of Int32, so the type's fields
 * are compared.
 */
function isInteger(type: DataType, bits: 32 | 64): boolean {
  return DataType.isInt(type) && type.isSigned && type.bitWidth === bits;
}

/** Adds to ids and stores 64-bit numbers as (low, high) halves, without a BigInt per row. */
function addToIds(ids: Int32Array | BigInt64Array, length: number, shift: number): BigInt64Array {
  const isWide = ids instanceof BigInt64Array;
  const words = isWide ? new Int32Array(ids.buffer, ids.byteOffset, 2 * length) : ids;
  const sums = new BigInt64Array(length);
  const halves = new Int32Array(sums.buffer);
  const low = shift % 2 ** 32;
  const high = Math.floor(shift / 2 ** 32);
  for (let row = 0; row < length; row++) {
    const sum = (words[isWide ? 2 * row : row] >>> 0) + low;
    const upper = isWide ? words[2 * row + 1] : words[row] >> 31;
    halves[2 * row] = sum % 2 ** 32;
    halves[2 * row + 1] = upper + high + (sum >= 2 ** 32 ? 1 : 0);
  }
  return sums;
}

function nullId(batch: RecordBatch, index: number): DataError {
  const ids = batch.getChildAt(index);
  let row = 0;
  while (ids?.get(row) !== null) row++;
  const { file, rowGroup, firstRow = 0 } = originOf(batch) ?? {};
  return new DataError('an id is null', {
    phase: 'generate',
    file,
    rowGroup,
    row: firstRow + row,
    column: batch.schema.fields[index].name,
  });
}

/** @throws DataError unless the column exists and has int32 or int64 ids. */
export function checkIdColumn(schema: Schema, column: string): void {
  const field = schema.fields.find(({ name }) => name === column);
  if (field === undefined) {
    throw new DataError(
      `no column "${column}"; the columns are ${schema.fields.map(({ name }) => name).join(', ')}`,
      { phase: 'generate', column },
    );
  }
  if (isInteger(field.type, 32) || isInteger(field.type, 64)) return;
  throw new DataError(`ids of type ${field.type} cannot be copied`, {
    phase: 'generate',
    column,
    advice: 'Copies add to the ids, which must be int32 or int64',
  });
}
