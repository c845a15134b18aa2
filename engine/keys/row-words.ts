import { type Data, DataType, Vector } from 'apache-arrow';
import { UsageError } from '../errors.ts';
import { withoutViews } from '../expressions/read.ts';
import { concatenate } from '../numbers/concatenate.ts';
import { mix32 } from '../random.ts';
import { bytesOfBits } from '../stream/take-data.ts';
import { keysFromData, keysFromVector, hasNulls, isNullAt } from './arrow-keys.ts';
import { keyCount } from './key-column.ts';
import { hashesOf } from './key-hash.ts';
import { Utf8KeyTable } from './tables/utf8-key-table.ts';

/** One of the 32-bit words of each row's value: row i has `words[start + step * i]`. */
export interface Word {
  readonly words: Int32Array;
  readonly start: number;
  readonly step: number;
}

/**
 * Reads the values of a column as 32-bit words. Two values have equal words exactly if the values are equal:
 * all NaNs are read as one NaN, and -0 as 0. The word of a text is its number among the texts added so far.
 * The words of nulls are undefined.
 */
export class WordReader {
  /** Number of words of a value. */
  readonly count: number;
  readonly #texts: Utf8KeyTable | undefined;
  /**
   * Words of dictionary entries. For texts, `known` is the number of known texts when the words were made.
   */
  readonly #entries = new WeakMap<Vector, { readonly words: Int32Array; readonly known: number }>();

  constructor({ name, type }: { readonly name: string; readonly type: DataType }) {
    const own = DataType.isDictionary(type) ? type.dictionary : type;
    this.#texts = isText(own) ? new Utf8KeyTable() : undefined;
    this.count = isText(own) ? 1 : wordsOfType(own);
    if (this.count === 0)
      throw new UsageError(`rows cannot be grouped by the column "${name}" of type ${type}`, {
        advice: 'Group by numbers, texts, dates, times or true and false',
      });
  }

  /**
   * The words of the rows' values. `adds`: true if new texts get numbers. Otherwise a new text gets the word
   * for an unknown text.
   */
  read(given: Data, adds: boolean): Word[] {
    const { count } = this;
    const data = withoutViews(given);
    const words = DataType.isDictionary(data.type)
      ? this.#ofDictionary(data, adds)
      : this.#texts === undefined
        ? wordArray(data)
        : textWords(data, this.#texts, adds);
    return Array.from({ length: count }, (_, start) => ({ words, start, step: count }));
  }

  #ofDictionary(data: Data, adds: boolean): Int32Array {
    const [entries, codes, { count }] = [this.#entriesOf(data, adds), data.values as Int32Array, this];
    const words = new Int32Array(data.length * count);
    if (entries.length === 0) return words;
    for (let i = 0; i < data.length; i++) {
      // The code of a null is undefined.
      const code = Number(codes[i]) * count;
      for (let w = 0; w < count; w++) words[i * count + w] = entries[code + w];
    }
    return words;
  }

  #entriesOf({ dictionary }: Data, adds: boolean): Int32Array {
    if (dictionary === undefined) return new Int32Array(0);
    const known = this.#entries.get(dictionary);
    const texts = this.#texts;
    // Some of the entries that were unknown may have been added as texts since then.
    if (known !== undefined && (known.known === Infinity || (!adds && known.known === texts?.size)))
      return known.words;
    const words =
      texts === undefined
        ? concatenate(Int32Array, dictionary.data.map(wordArray))
        : numbered(keysFromVector(new Vector(dictionary.data.map(withoutViews)), 'dictionary'), texts, adds);
    this.#entries.set(dictionary, { words, known: adds || texts === undefined ? Infinity : texts.size });
    return words;
  }
}

/** Number of words of a value; 0 for unsupported types. */
export function wordsOfType(type: DataType): number {
  if (DataType.isNull(type) || DataType.isBool(type)) return 1;
  if (DataType.isInt(type)) return type.bitWidth === 64 ? 2 : 1;
  if (DataType.isFloat(type)) return type.precision === 2 ? 2 : 1;
  if (DataType.isDate(type)) return type.unit === 1 ? 2 : 1;
  if (DataType.isTimestamp(type) || DataType.isDuration(type)) return 2;
  if (DataType.isTime(type) || DataType.isDecimal(type)) return type.bitWidth / 32;
  return DataType.isFixedSizeBinary(type) && type.byteWidth % 4 === 0 ? type.byteWidth / 4 : 0;
}

function textWords(data: Data, texts: Utf8KeyTable, adds: boolean): Int32Array {
  return numbered(keysFromData(data, 'utf8'), texts, adds);
}

function numbered(keys: ReturnType<typeof keysFromData>, texts: Utf8KeyTable, adds: boolean): Int32Array {
  const codes = new Uint32Array(keyCount(keys));
  if (adds) texts.add(keys, codes);
  else texts.find(keys, codes);
  return new Int32Array(codes.buffer);
}

/** The words of a fixed-width column, value by value. */
export function wordArray(data: Data): Int32Array {
  const { type, length } = data;
  const raw: unknown = data.values;
  if (DataType.isNull(type)) return new Int32Array(length);
  if (DataType.isBool(type))
    return Int32Array.from(bytesOfBits(raw as Uint8Array, data.offset, new Uint8Array(length)));
  if (DataType.isFloat(type)) return floatWords(raw as Float64Array | Float32Array | Uint16Array, length);
  const { buffer, byteOffset, BYTES_PER_ELEMENT: bytes } = raw as Int32Array;
  if (bytes < 4 && !DataType.isFixedSizeBinary(type))
    return Int32Array.from((raw as Int16Array).subarray(0, length));
  const count = wordsOfType(type) * length;
  if (byteOffset % 4 === 0) return new Int32Array(buffer, byteOffset, count);
  return new Int32Array(buffer.slice(byteOffset, byteOffset + 4 * count));
}

/** The bits of floats, except that all NaNs get the same bits, and -0 the bits of 0. */
function floatWords(values: Float64Array | Float32Array | Uint16Array, length: number): Int32Array {
  if (values instanceof Uint16Array) {
    const words = new Int32Array(length);
    for (let i = 0; i < length; i++) {
      const bits = values[i];
      words[i] = (bits & 0x7fff) > 0x7c00 ? 0x7e00 : bits === 0x8000 ? 0 : bits;
    }
    return words;
  }
  const own = values.slice(0, length);
  for (let i = 0; i < length; i++) {
    const value = own[i];
    if (value === 0) own[i] = 0;
    else if (value !== value) own[i] = Number.NaN;
  }
  return new Int32Array(own.buffer);
}

const NULL_WORD = 0x6e756c6c;

let hashRoom = new Uint32Array(0);

/**
 * Hashes each row's values in some columns. Rows that RowNumbers treats as equal have equal hashes, in every
 * thread. The upper bits of the hash select the part to which an exchange sends the row. The hashes are in
 * memory that the next call reuses.
 */
export function hashRows(columns: readonly Data[], rows: number): Uint32Array {
  if (hashRoom.length < rows) hashRoom = new Uint32Array(rows);
  const hashes = hashRoom.subarray(0, rows).fill(0);
  for (const data of columns) {
    const { words, step } = hashWords(withoutViews(data), rows);
    if (hasNulls(data)) mixNullable(hashes, data, words, step);
    else if (step === 1) mixWords(hashes, words, rows);
    else mixSteps(hashes, words, step);
  }
  return hashes;
}

function mixWords(hashes: Uint32Array, words: Int32Array, rows: number): void {
  for (let row = 0; row < rows; row++) hashes[row] = mix32(hashes[row], words[row]);
}

function mixSteps(hashes: Uint32Array, words: Int32Array, step: number): void {
  for (let row = 0, at = 0; row < hashes.length; row++)
    for (let word = 0; word < step; word++) hashes[row] = mix32(hashes[row], words[at++]);
}

function mixNullable(hashes: Uint32Array, data: Data, words: Int32Array, step: number): void {
  for (let row = 0; row < hashes.length; row++) {
    const isNull = isNullAt(data, row);
    for (let word = 0; word < step; word++)
      hashes[row] = mix32(hashes[row], isNull ? NULL_WORD : words[row * step + word]);
  }
}

/** The 32-bit words of each row's value (for text, of its hash): row i starts at `i * step`. */
function hashWords(data: Data, rows: number): { readonly words: Int32Array; readonly step: number } {
  const { type, dictionary } = data;
  if (DataType.isDictionary(type)) {
    if (dictionary === undefined || dictionary.length === 0) return { words: new Int32Array(rows), step: 1 };
    const step = isText(type.dictionary) ? 1 : wordsOfType(type.dictionary);
    const entries = isText(type.dictionary)
      ? hashesOf(keysFromVector(new Vector(dictionary.data.map(withoutViews)), 'dictionary'))
      : Int32Array.from(dictionary.data.flatMap((chunk) => [...wordArray(chunk)]));
    const [words, codes] = [new Int32Array(rows * step), data.values as Int32Array];
    for (let row = 0; row < rows; row++)
      for (let word = 0; word < step; word++)
        words[row * step + word] = entries[Number(codes[row]) * step + word];
    return { words, step };
  }
  if (isText(type)) return { words: hashesOf(keysFromData(data, 'utf8')), step: 1 };
  return { words: wordArray(data), step: wordsOfType(type) };
}

function isText(type: DataType): boolean {
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isUtf8View(type);
}
