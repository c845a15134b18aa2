import { Builder, Data, DataType, makeBuilder, makeData, RecordBatch, Struct, type TypeMap, Vector } from 'apache-arrow';

/** The rows of a batch at the given positions, in that order, with every column and its nulls. */
export function takeRows(batch: RecordBatch, positions: Uint32Array): RecordBatch {
  const children = batch.data.children.map((data) => takeData(data, positions));
  const data = makeData({ type: new Struct<TypeMap>(batch.schema.fields), length: positions.length, nullCount: 0, children });
  return new RecordBatch(batch.schema, data);
}

function takeData(data: Data, positions: Uint32Array): Data {
  const fixedWidth = DataType.isInt(data.type) || DataType.isFloat(data.type) || DataType.isTimestamp(data.type);
  if (!fixedWidth || data.nullCount > 0) return takeByBuilder(data, positions);
  const source = data.values as Int32Array;
  const values = new (source.constructor as Int32ArrayConstructor)(positions.length);
  for (let i = 0; i < positions.length; i++) values[i] = source[positions[i]];
  return makeData({ type: data.type as never, length: positions.length, nullCount: 0, data: values as never });
}

/** Any other type goes value by value through Arrow's own builder. */
function takeByBuilder(data: Data, positions: Uint32Array): Data {
  const vector = new Vector([data]);
  const builder: Builder = makeBuilder({ type: data.type, nullValues: [null] });
  for (const position of positions) builder.append(vector.get(position));
  return builder.finish().flush();
}
