import { type Data, type Vector, DataType, Utf8 } from 'apache-arrow';
import { withoutViews } from '../expressions/read.ts';
import { joinData } from './join-data.ts';
import { takeData } from './take-data.ts';

const joined = new WeakMap<Vector, Data>();

/** The values of a dictionary as one chunk; made once, since batches share it. */
export function dictionaryValues(dictionary: Vector): Data {
  let values = joined.get(dictionary);
  if (values === undefined) joined.set(dictionary, (values = joinData(dictionary.type, dictionary.data)));
  return values;
}

/** Replaces the codes of a column by the dictionary's values. */
export function expandDictionary(
  data: Data,
  values: Data = dictionaryValues(data.dictionary as Vector),
): Data {
  const { length, nullCount } = data;
  const codes = data.values as Int32Array | BigInt64Array;
  const nulls = values.length;
  // A row is null if its code is null, or if the dictionary entry is.
  const positions = new Uint32Array(length);
  for (let row = 0; row < length; row++)
    positions[row] = nullCount > 0 && !data.getValid(row) ? nulls : Number(codes[row]);
  return takeData(nullCount > 0 ? joinData(values.type, [values], 1) : values, positions);
}

/** The type without a dictionary; text views become plain text. */
export function plainType(type: DataType): DataType {
  if (DataType.isDictionary(type)) return plainType(type.dictionary);
  return DataType.isUtf8View(type) ? new Utf8() : type;
}

/** A column with values in place of dictionary codes, so that columns of several batches can be joined. */
export function plainData(data: Data): Data {
  if (!DataType.isDictionary(data.type)) return withoutViews(data);
  const values = data.dictionary?.data ?? [];
  return expandDictionary(data, joinData(plainType(data.type), values.map(plainData)));
}
