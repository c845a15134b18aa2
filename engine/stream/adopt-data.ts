import {
  Data,
  DataType,
  type Dictionary,
  RecordBatch,
  type Schema,
  Struct,
  type TypeMap,
  Vector,
} from 'apache-arrow';

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
