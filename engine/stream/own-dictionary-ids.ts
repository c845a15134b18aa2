import { Dictionary, Field, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';

/**
 * The schema with a dictionary id for each column; the same schema if no columns share an id. Columns copied
 * from one column share its id and may have different dictionaries, which Arrow's writers reject.
 */
export function ownDictionaryIds(schema: Schema): Schema {
  const types = schema.fields.map(({ type }) => type).filter((type) => type instanceof Dictionary);
  const ids = new Set(types.map(({ id }) => id));
  if (ids.size === types.length) return schema;
  const first = Math.max(...ids) + 1;
  const fields = schema.fields.map(({ name, type, nullable, metadata }, i) => {
    const own =
      type instanceof Dictionary
        ? new Dictionary(type.dictionary, type.indices, first + i, type.isOrdered)
        : type;
    return new Field(name, own, nullable, metadata);
  });
  return new Schema(fields, schema.metadata);
}

/** The same rows under the types of a schema from `ownDictionaryIds`. */
export function withOwnIds({ data }: RecordBatch, schema: Schema): RecordBatch {
  const children = data.children.map((child, i) => child.clone(schema.fields[i].type));
  const { length, nullCount } = data;
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length, nullCount, nullBitmap: data.nullBitmap, children }),
  );
}
