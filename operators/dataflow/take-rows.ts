import { makeData, RecordBatch, Struct, type TypeMap } from 'apache-arrow';
import { takeData } from '../../engine/stream/take-data.ts';
import { setTakenOrigin } from '../../engine/stream/stream.ts';

/** The rows of a batch at the given positions, in that order, with all columns, nulls and origins. */
export function takeRows(batch: RecordBatch, positions: Uint32Array): RecordBatch {
  const children = batch.data.children.map((data) => takeData(data, positions));
  const data = makeData({
    type: new Struct<TypeMap>(batch.schema.fields),
    length: positions.length,
    nullCount: 0,
    children,
  });
  return setTakenOrigin(new RecordBatch(batch.schema, data), batch, positions);
}
