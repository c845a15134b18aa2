import { DataType, Field, makeData, RecordBatch, Schema, Struct, Utf8, Vector, vectorFromArray } from 'apache-arrow';
import type { Data, LargeUtf8 } from 'apache-arrow';

/**
 * The schema with plain columns. Writers leave hints in a file that make strings arrive as dictionaries (pandas), with 64-bit offsets
 * (polars) or as views. The rest of the engine knows one kind, utf8; numbers behind a dictionary become plain too.
 */
export function plainSchema(schema: Schema): Schema {
  if (schema.fields.every(({ type }) => plainType(type) === type)) return schema;
  return new Schema(schema.fields.map((field) => new Field(field.name, plainType(field.type), field.nullable)));
}

/** The batch with plain columns; the batch itself when all are plain. */
export function plainBatch(batch: RecordBatch): RecordBatch {
  const schema = plainSchema(batch.schema);
  if (schema === batch.schema) return batch;
  const children = batch.data.children.map((child, index) => plainData(child, schema.fields[index].type));
  return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: batch.numRows, nullCount: 0, children }));
}

function plainType(type: DataType): DataType {
  if (DataType.isDictionary(type)) return plainType(type.dictionary);
  return DataType.isLargeUtf8(type) || DataType.isUtf8View(type) ? new Utf8() : type;
}

function plainData(data: Data, type: DataType): Data {
  if (data.type === type) return data;
  if (DataType.isLargeUtf8(data.type)) return narrowOffsets(data as Data<LargeUtf8>);
  if (data.length === 0) return makeData({ type, length: 0, nullCount: 0 } as Parameters<typeof makeData>[0]);
  return vectorFromArray([...new Vector([data])], type).data[0];
}

/** The text under 32-bit offsets, over the same bytes: a batch of strings is far below 2 GiB. */
function narrowOffsets(data: Data<LargeUtf8>): Data<Utf8> {
  const { valueOffsets, values, length, nullCount, nullBitmap } = data;
  const first = Number(valueOffsets[0]);
  const offsets = Int32Array.from({ length: length + 1 }, (_, i) => Number(valueOffsets[i]) - first);
  return makeData({ type: new Utf8(), length, nullCount, nullBitmap, valueOffsets: offsets, data: values.subarray(first, first + offsets[length]) });
}
