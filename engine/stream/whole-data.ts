import {
  Data,
  DataType,
  RecordBatch,
  type Dictionary,
  makeData,
  type Schema,
  Struct,
  type TypeMap,
  Vector,
} from 'apache-arrow';
import { counted } from '../format.ts';

/**
 * Describes a column that has fewer values than the batch has rows: apache-arrow makes such batches from
 * columns of different lengths without an error. Undefined if all columns are whole.
 */
export function shortColumn({ schema, data, numRows }: RecordBatch): string | undefined {
  if (numRows === 0) return undefined;
  const at = data.children.findIndex((column) => column.length < numRows || !isWhole(column));
  if (at < 0) return undefined;
  return `a batch of ${counted(numRows, 'row')} whose column "${schema.fields[at].name}" has fewer values`;
}

function isWhole({ type, offset, length, stride, values, valueOffsets, children }: Data): boolean {
  const own = valueOffsets as ArrayLike<number> | undefined;
  if (own !== undefined && !DataType.isUnion(type)) {
    if (length > 0 && own.length <= length) return false;
    const end = length === 0 ? 0 : Number(own[length]);
    return values === undefined || children.length > 0
      ? children.every((child) => child.length >= end && isWhole(child))
      : (values as ArrayLike<number>).length >= end;
  }
  const needed = DataType.isBool(type) ? Math.ceil((offset + length) / 8) : stride * length;
  const stored = values as ArrayLike<unknown> | undefined;
  if (stored !== undefined && children.length === 0) return stored.length >= needed;
  const each = DataType.isFixedSizeList(type) ? stride * length : length;
  return DataType.isUnion(type) || children.every((child) => child.length >= each && isWhole(child));
}

/** A batch of columns without nulls of its own. */
export function batchOf(schema: Schema, length: number, children: Data[]): RecordBatch {
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length, nullCount: 0, children }));
}

/**
 * Returns a batch under a schema with the same columns. The batch may come from another copy of apache-arrow,
 * which a caller's module imported and whose types are not instances of this copy's classes. Buffers are not
 * copied.
 */
export function adoptBatch({ data }: RecordBatch, schema: Schema): RecordBatch {
  const own = data.type instanceof DataType ? data : adopted(data, new Struct<TypeMap>(schema.fields));
  return new RecordBatch(schema, own as RecordBatch['data']);
}

function adopted(data: Data, type: DataType): Data {
  const { offset, length, nullCount, valueOffsets, values, nullBitmap, typeIds } = data;
  const children = data.children.map((child, i) => adopted(child, type.children[i].type));
  const entries = (type as Dictionary).dictionary;
  const dictionary =
    data.dictionary && new Vector(data.dictionary.data.map((chunk: Data) => adopted(chunk, entries)));
  const buffers = { 0: valueOffsets, 1: values, 2: nullBitmap, 3: typeIds } as never;
  const { variadicBuffers } = data as { readonly variadicBuffers?: readonly Uint8Array[] };
  return new Data(type, offset, length, nullCount, buffers, children, dictionary, variadicBuffers as never);
}
