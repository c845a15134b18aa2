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
import type { IdColumn } from '../../connectors/model/id-column.ts';
import { keysToVector } from '../../engine/keys/arrow-keys.ts';
import type { Id, IdValues } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';

/**
 * The factors of a side as typed arrays, which are views of the model's memory: copy them before changing
 * them.
 */
export interface FactorArrays {
  /**
   * Ids, ascending, in the form of the session's option `ids`: int32 as numbers and int64 as bigints are not
   * copied.
   */
  readonly ids: Int32Array | Float64Array | BigInt64Array | readonly Id[];
  /** Row-major, rows x columns: row i belongs to ids[i]. */
  readonly values: Float32Array;
  readonly rows: number;
  /** The rank, plus two with biases. */
  readonly columns: number;
}

export function factorArrays(
  keys: KeyColumn,
  ids: IdValues,
  values: Float32Array,
  columns: number,
): FactorArrays {
  return { ids: idArray(keys, ids), values, rows: keyCount(keys), columns };
}

function idArray(keys: KeyColumn, { form, at }: IdValues): FactorArrays['ids'] {
  const ids = idColumnOf(keys);
  if (ids.type === 'utf8' || form === 'string')
    return Array.from({ length: keyCount(keys) }, (_, i) => at(i));
  if (form === 'bigint') return ids.type === 'int64' ? ids.values : BigInt64Array.from(ids.values, BigInt);
  return ids.type === 'int32' ? ids.values : Float64Array.from(ids.values, Number);
}

/** Ids in the form of a model's files, without a copy. */
export function idColumnOf(keys: KeyColumn): IdColumn {
  return keys.type === 'int64'
    ? { type: 'int64', values: new BigInt64Array(keys.halves.buffer, keys.halves.byteOffset, keyCount(keys)) }
    : keys;
}

/** The reverse of `idColumnOf`. */
export function keysOf(ids: IdColumn): KeyColumn {
  return ids.type === 'int64'
    ? {
        type: 'int64',
        halves: new Int32Array(ids.values.buffer, ids.values.byteOffset, 2 * ids.values.length),
      }
    : ids;
}

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
