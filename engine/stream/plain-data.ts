import { type Data, DataType, Utf8 } from 'apache-arrow';
import { withoutViews } from '../expressions/without-views.ts';
import { joinData, nullData } from './join-data.ts';
import { takeData } from './take-data.ts';

/** The type of a column's values without a dictionary, of texts as views that of plain texts. */
export function plainType(type: DataType): DataType {
  if (DataType.isDictionary(type)) return plainType(type.dictionary);
  return DataType.isUtf8View(type) ? new Utf8() : type;
}

/** A column with its values in place of codes of a dictionary, so that columns of several batches can be joined. */
export function plainData(data: Data): Data {
  if (!DataType.isDictionary(data.type)) return withoutViews(data);
  const { length, dictionary } = data;
  const type = plainType(data.type);
  const entries = joinData(type, dictionary?.data.map(plainData) ?? []);
  if (entries.length === 0) return nullData(type, length);
  const positions = new Uint32Array(length);
  const codes = data.values as ArrayLike<number | bigint>;
  for (let i = 0; i < length; i++) if (data.getValid(i)) positions[i] = Number(codes[i]);
  const taken = takeData(entries, positions);
  if (data.nullCount === 0) return taken;
  for (let i = 0; i < length; i++) if (!data.getValid(i)) taken.setValid(i, false);
  return taken;
}
