import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { UsageError } from '../errors.ts';
import { hasNulls } from '../keys/arrow-keys.ts';
import { nearest, spelled } from '../nearest.ts';
import { expandDictionary } from '../stream/dictionary-values.ts';
import { joinData } from '../stream/join-data.ts';
import {
  compareTexts,
  isText,
  LONG_TEXT,
  type SortTexts,
  TEXT_WORDS,
  textsOf,
  textsOfDictionary,
  writeSides,
  writeTexts,
} from './sort-texts.ts';
import { type WordWriter, wordWriter } from './sort-words.ts';

/**
 * A column to order by. Nulls come first when ascending and last when descending, unless `nulls` is given.
 */
export interface SortKey {
  readonly column: string;
  readonly descending?: boolean;
  readonly nulls?: 'first' | 'last';
}

/** A word of each row, or one word for all rows. */
export type KeyWord = Uint32Array | number;

/**
 * Sort keys of a batch's rows: rows are ordered by their words; if long texts have equal words, their
 * remaining bytes are compared.
 */
export interface KeyWords {
  readonly rows: number;
  /** Most significant first: for each key a word for nulls, then the words of the value. */
  readonly words: readonly KeyWord[];
  readonly texts: readonly TextKey[];
}

export interface TextKey {
  /** Index after the last word of the text. */
  readonly end: number;
  /** The value of the length word for a text longer than its prefix. */
  readonly long: number;
  readonly sign: 1 | -1;
  readonly texts: SortTexts;
}

interface KeyColumn {
  readonly position: number;
  readonly nullsFirst: boolean;
  readonly descending: boolean;
  /** Undefined for text columns. */
  readonly writer: WordWriter | undefined;
  readonly prefix?: Uint8Array | undefined;
}

/** Makes the words of batches of one schema. */
export class SortKeys {
  readonly #columns: readonly KeyColumn[];

  /**
   * Prepares sort keys for batches of a schema. `prefixes`: for a text key, a prefix that most of its texts
   * share, and that words do not include. Throws UsageError for a column that does not exist or whose type
   * has no order.
   */
  constructor(schema: Schema, keys: readonly SortKey[], prefixes: readonly (Uint8Array | undefined)[] = []) {
    this.#columns = keys.map((key, i) => ({ ...columnOf(schema, key), prefix: prefixes[i] }));
  }

  of(batch: RecordBatch): KeyWords {
    return this.ofChunks(
      batch.data.children.map((column) => [column]),
      batch.numRows,
    );
  }

  ofChunks(columns: readonly (readonly Data[])[], rows: number): KeyWords {
    const words: KeyWord[] = [];
    const texts: TextKey[] = [];
    for (const column of this.#columns) {
      const values = Array.from({ length: wordsOf(column) }, () => new Uint32Array(rows));
      const given = columns[column.position];
      // The remaining bytes of texts are compared in one array.
      const chunks =
        column.writer === undefined && given.length > 1 ? [joinData(given[0].type, given)] : given;
      const found = writeColumn(column, chunks, values);
      words.push(flagsOf(column, chunks, values), ...values);
      if (found === undefined) continue;
      const long = (column.descending ? ~LONG_TEXT : LONG_TEXT) >>> 0;
      texts.push({ end: words.length, long, sign: column.descending ? -1 : 1, texts: found });
    }
    return { rows, words, texts };
  }
}

/**
 * Number of words of a value. A text key with a prefix has one more word, which says whether a text is
 * before the prefix, starts with it, or is after it.
 */
function wordsOf({ writer, prefix }: KeyColumn): number {
  return writer?.count ?? TEXT_WORDS + (prefix === undefined ? 0 : 1);
}

/** True for types of values that have an order. */
export function hasOrder(type: DataType): boolean {
  const own: DataType = DataType.isDictionary(type) ? type.dictionary : type;
  return wordWriter(own) !== undefined || isText(own);
}

function columnOf(schema: Schema, { column: name, descending = false, nulls }: SortKey): KeyColumn {
  const names = schema.fields.map((field) => field.name);
  const position = names.indexOf(name);
  if (position < 0)
    throw new UsageError(`there is no column "${name}" to sort by`, {
      advice: spelled(nearest(name, names), `The columns are: ${names.join(', ') || 'none'}`),
    });
  const { type: given } = schema.fields[position];
  const type: DataType = DataType.isDictionary(given) ? given.dictionary : given;
  const writer = wordWriter(type);
  if (!hasOrder(type))
    throw new UsageError(`the rows cannot be sorted by the column "${name}" of type ${type}`, {
      advice: 'Sort by numbers, texts, UUIDs, dates, times or true and false',
    });
  const nullsFirst = nulls === undefined ? !descending : nulls === 'first';
  return { position, nullsFirst, descending, writer };
}

function writeColumn(
  { writer, descending, prefix }: KeyColumn,
  chunks: readonly Data[],
  all: readonly Uint32Array[],
): SortTexts | undefined {
  const values = prefix === undefined ? all : all.slice(1);
  let texts: SortTexts | undefined;
  let row = 0;
  for (const data of chunks) {
    const { dictionary, length } = data;
    const own = values.map((word) => word.subarray(row, row + length));
    if (writer !== undefined) writer.write(dictionary === undefined ? data : expandDictionary(data), own);
    else {
      texts = dictionary === undefined ? textsOf(data) : textsOfDictionary(data, dictionary);
      if (prefix !== undefined) {
        writeSides(texts, prefix, all[0], descending);
        texts = { ...texts, skip: prefix.length };
      }
      writeTexts(texts, length, own);
    }
    row += length;
  }
  if (descending) for (const word of values) invert(word);
  return texts;
}

function invert(word: Uint32Array): void {
  for (let row = 0; row < word.length; row++) word[row] = ~word[row];
}

/**
 * Returns the word that orders nulls before or after the valid rows of a key. Also sets the value words of
 * all nulls to the same value.
 */
function flagsOf(
  { nullsFirst }: KeyColumn,
  chunks: readonly Data[],
  values: readonly Uint32Array[],
): KeyWord {
  const valid = nullsFirst ? 1 : 0;
  const nulls = nullRows(chunks);
  if (nulls === undefined) return valid;
  for (const word of values) for (let row = 0; row < nulls.length; row++) if (nulls[row] === 1) word[row] = 0;
  const flags = new Uint32Array(nulls.length);
  for (let row = 0; row < flags.length; row++) flags[row] = nulls[row] ^ valid;
  return flags;
}

export function wordAt(word: KeyWord, row: number): number {
  return typeof word === 'number' ? word : word[row];
}

/** Compares rows of two batches with the same sort keys. */
export function compareRows(a: KeyWords, rowA: number, b: KeyWords, rowB: number): number {
  let text = 0;
  for (let word = 0; word < a.words.length;) {
    const valueA = wordAt(a.words[word], rowA);
    const valueB = wordAt(b.words[word], rowB);
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

/**
 * Returns a byte for each row of all chunks: 1 if the row, or its dictionary entry, is null. Undefined if no
 * row is null.
 */
function nullRows(chunks: readonly Data[]): Uint8Array | undefined {
  if (!chunks.some((data) => DataType.isNull(data.type) || hasNulls(data))) return undefined;
  const nulls = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let row = 0;
  for (const data of chunks) {
    markNulls(data, nulls.subarray(row, row + data.length));
    row += data.length;
  }
  return nulls;
}

function markNulls(data: Data, nulls: Uint8Array): void {
  const { type, nullBitmap, offset, nullCount, dictionary } = data;
  if (DataType.isNull(type)) nulls.fill(1);
  else if (nullCount > 0)
    for (let row = 0, bit = offset; row < nulls.length; row++, bit++)
      nulls[row] = (~nullBitmap[bit >> 3] >> (bit & 7)) & 1;
  if (dictionary === undefined || dictionary.nullCount === 0) return;
  const entries = Uint8Array.from({ length: dictionary.length }, (_, i) => (dictionary.isValid(i) ? 0 : 1));
  const codes: Int32Array | BigInt64Array = data.values;
  for (let row = 0; row < nulls.length; row++) nulls[row] |= entries[Number(codes[row])];
}

/** Keys in SQL's form, with the position of nulls if given: "user", "time desc nulls first". */
export function printKeys(keys: readonly SortKey[]): string[] {
  return keys.map(({ column, descending, nulls }) =>
    [column, ...(descending ? ['desc'] : []), ...(nulls === undefined ? [] : [`nulls ${nulls}`])].join(' '),
  );
}
