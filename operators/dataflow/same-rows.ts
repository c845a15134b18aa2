import { type Data, makeData, RecordBatch, type Schema, Struct, type TypeMap } from 'apache-arrow';
import { originOf, setOrigin } from '../../engine/stream/stream.ts';

/** A batch with the same rows and origin, but other columns. */
export function sameRows(batch: RecordBatch, schema: Schema, children: Data[]): RecordBatch {
  const type = new Struct<TypeMap>(schema.fields);
  const made = new RecordBatch(schema, makeData({ type, length: batch.numRows, nullCount: 0, children }));
  const origin = originOf(batch);
  return origin === undefined ? made : setOrigin(made, origin);
}

/** The columns of a batch that a schema names, in its order. */
export function columnsAs(batch: RecordBatch, schema: Schema): RecordBatch {
  const { fields } = batch.schema;
  const at = ({ name }: { readonly name: string }) => fields.findIndex((field) => field.name === name);
  return sameRows(
    batch,
    schema,
    schema.fields.map((field) => batch.data.children[at(field)]),
  );
}
