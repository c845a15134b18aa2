import { type Data, DataType } from 'apache-arrow';
import { readData } from './read.ts';
import { writeData } from './write.ts';

/** Converts a column of text views to plain text; returns other columns unchanged. */
export function withoutViews(data: Data): Data {
  return DataType.isUtf8View(data.type) ? writeData(readData(data), data.length) : data;
}
