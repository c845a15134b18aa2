import { type Data, DataType, Utf8 } from 'apache-arrow';
import { withoutViews } from '../expressions/without-views.ts';
import { expandDictionary } from './dictionary-values.ts';
import { joinData } from './join-data.ts';

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
