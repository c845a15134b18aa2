import {
  Field,
  FixedSizeList,
  Float32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
} from 'apache-arrow';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';

/** Factors with their ids as a batch {id, features: FixedSizeList<float32>[rank]} over the same memory. */
export function factorBatch(ids: KeyColumn, factors: Float32Array, rank: number): RecordBatch {
  const idData = keysToVector(ids).data[0];
  const values = makeData({ type: new Float32(), length: factors.length, data: factors });
  const type = new FixedSizeList(rank, new Field('element', new Float32(), false));
  const features = makeData({ type, length: idData.length, nullCount: 0, child: values });
  const schema = new Schema([new Field('id', idData.type, false), new Field('features', type, false)]);
  return new RecordBatch(
    schema,
    makeData({
      type: new Struct<TypeMap>(schema.fields),
      length: idData.length,
      nullCount: 0,
      children: [idData, features],
    }),
  );
}
