import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { UsageError } from '../errors.ts';
import { compareTexts, isText, LONG_TEXT, type SortTexts, TEXT_WORDS } from './sort-texts.ts';
import { textsOf, textsOfDictionary, writeTexts } from './sort-texts.ts';
import { type WordWriter, wordWriter } from './sort-words.ts';

/** A column to order by. Nulls come first when ascending and last when descending, unless `nulls` is given. */
export interface SortKey {
  readonly column: string;
  readonly descending?: boolean;
  readonly nulls?: 'first' | 'last';
}

/** Keys of the rows of a batch: rows in the order of their words; equal long texts are compared whole. */
export interface KeyWords {
  readonly rows: number;
  /** An array for each word of a row, from the most significant. */
  readonly words: readonly Uint32Array[];
  readonly texts: readonly TextKey[];
}

export interface TextKey {
  /** Position of the word after those of the text. */
  readonly end: number;
  /** The length word of a text that is longer than its prefix. */
  readonly long: number;
  readonly sign: 1 | -1;
  readonly texts: SortTexts;
}

interface KeyColumn {
  readonly position: number;
  readonly name: string;
  readonly nullable: boolean;
  readonly nullsFirst: boolean;
  readonly descending: boolean;
  /** Undefined for texts. */
  readonly writer: WordWriter | undefined;
}

/** Makes the words of batches of one schema; each row has `count` words. */
export class SortKeys {
  readonly count: number;
  readonly #columns: readonly KeyColumn[];

  constructor(schema: Schema, keys: readonly SortKey[]) {
    this.#columns = keys.map((key) => columnOf(schema, key));
    this.count = this.#columns.reduce((sum, column) => sum + wordsOf(column), 0);
  }

  of(batch: RecordBatch): KeyWords {
    const words = Array.from({ length: this.count }, () => new Uint32Array(batch.numRows));
    const texts: TextKey[] = [];
    let at = 0;
    for (const column of this.#columns) {
      const end = at + wordsOf(column);
      const found = writeColumn(column, batch.data.children[column.position], words.slice(at, end));
      const long = (column.descending ? ~LONG_TEXT : LONG_TEXT) >>> 0;
      if (found !== undefined) texts.push({ end, long, sign: column.descending ? -1 : 1, texts: found });
      at = end;
    }
    return { rows: batch.numRows, words, texts };
  }
}

function columnOf(schema: Schema, { column: name, descending = false, nulls }: SortKey): KeyColumn {
  const position = schema.fields.findIndex((field) => field.name === name);
  if (position < 0) throw new UsageError(`No column ${name} to sort by`);
  const { type, nullable } = schema.fields[position];
  const writer = wordWriter(type);
  const text = isText(type) || (DataType.isDictionary(type) && isText(type.dictionary));
  if (writer === undefined && !text) throw new UsageError(`Cannot sort by column ${name} of type ${type}`);
  const nullsFirst = nulls === undefined ? !descending : nulls === 'first';
  return { position, name, nullable, nullsFirst, descending, writer };
}

function wordsOf({ writer, nullable }: KeyColumn): number {
  return (writer?.count ?? TEXT_WORDS) + (nullable ? 1 : 0);
}

function writeColumn(column: KeyColumn, data: Data, words: readonly Uint32Array[]): SortTexts | undefined {
  const values = column.nullable ? words.slice(1) : words;
  let texts: SortTexts | undefined;
  if (column.writer !== undefined) column.writer.write(data, values);
  else {
    texts = data.dictionary === undefined ? textsOf(data) : textsOfDictionary(data, data.dictionary);
    writeTexts(texts, data.length, values);
  }
  if (column.descending) for (const word of values) invert(word);
  markNulls(column, data, words, values);
  return texts;
}

function invert(word: Uint32Array): void {
  for (let row = 0; row < word.length; row++) word[row] = ~word[row];
}

/** Sets the flag words; all nulls get the same words. */
function markNulls(
  { name, nullable, nullsFirst }: KeyColumn,
  data: Data,
  [flags]: readonly Uint32Array[],
  values: readonly Uint32Array[],
): void {
  const dictionary = data.dictionary?.nullCount ? data.dictionary : undefined;
  if (nullable && nullsFirst) flags.fill(1);
  if (data.nullCount === 0 && dictionary === undefined) return;
  for (let row = 0; row < data.length; row++) {
    if (data.getValid(row) && (dictionary?.isValid(Number(data.values[row])) ?? true)) continue;
    if (!nullable) throw new UsageError(`Column ${name} has a null, but its schema says that it has none`);
    for (const word of values) word[row] = 0;
    flags[row] = nullsFirst ? 0 : 1;
  }
}

/** Compares rows of two batches with words of the same `SortKeys`. */
export function compareRows(a: KeyWords, rowA: number, b: KeyWords, rowB: number): number {
  let text = 0;
  for (let word = 0; word < a.words.length;) {
    const valueA = a.words[word][rowA];
    const valueB = b.words[word][rowB];
    if (valueA !== valueB) return valueA < valueB ? -1 : 1;
    word++;
    if (text === a.texts.length || a.texts[text].end !== word) continue;
    const { long, sign, texts } = a.texts[text];
    if (valueA === long) {
      const order = compareTexts(texts, rowA, b.texts[text].texts, rowB);
      if (order !== 0) return sign * order;
    }
    text++;
  }
  return 0;
}
