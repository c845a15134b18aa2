import { type Data, DataType } from 'apache-arrow';
import { plainValues } from '../../../engine/values/plain-values.ts';
import { PLAIN_NUMBER, timeIn } from './time-in.ts';

/** Called for each row whose text cannot be converted, with the reason. */
export type OnRefusedText = (row: number, reason: string) => void;

/** True for text, including dictionaries of text. */
export function isText(type: DataType): boolean {
  const of: DataType = DataType.isDictionary(type) ? type.dictionary : type;
  return DataType.isUtf8(of) || DataType.isLargeUtf8(of);
}

/**
 * Numbers of a column of text or booleans (true is 1, false is 0). NaN for nulls and for texts that are not
 * numbers; each such text is also passed to `onRefused`.
 */
export function numbersOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, numberIn, 'is not a number', onRefused);
}

/**
 * Times of a column of text, in milliseconds since 1970 (see timeIn). NaN for nulls and for texts that are
 * not times; each such text is also passed to `onRefused`.
 */
export function timesOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, timeIn, 'is not a time such as 2024-05-31 or 2024-05-31T12:00:00Z', onRefused);
}

function valuesOf(
  data: Data,
  read: (text: string) => number | undefined,
  problem: string,
  onRefused: OnRefusedText,
): Float64Array {
  const valueOf = plainValues(data);
  const values = new Float64Array(data.length).fill(Number.NaN);
  for (let row = 0; row < values.length; row++) {
    const value = valueOf(row);
    if (value === null) continue;
    const number = read(String(value));
    if (number === undefined) onRefused(row, `"${shortened(String(value))}" ${problem}`);
    else values[row] = number;
  }
  return values;
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

function numberIn(text: string): number | undefined {
  const trimmed = text.trim();
  if (PLAIN_NUMBER.test(trimmed)) return Number(trimmed);
  const truth = trimmed.toLowerCase();
  return truth === 'true' ? 1 : truth === 'false' ? 0 : undefined;
}
