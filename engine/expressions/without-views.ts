import { type Data, DataType } from 'apache-arrow';
import { readData } from './read.ts';
import { writeData } from './write.ts';

/** Texts that are stored as views as plain ones; other columns as they are. */
export function withoutViews(data: Data): Data {
  return DataType.isUtf8View(data.type) ? writeData(readData(data), data.length) : data;
}
