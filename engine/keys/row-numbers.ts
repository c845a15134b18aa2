import { type Data, DataType } from 'apache-arrow';
import { UsageError } from '../errors.ts';
import { hasNulls, isNullAt, keysFromData } from './arrow-keys.ts';
import { Int32KeyTable } from './tables/int32-key-table.ts';
import { Int64KeyTable } from './tables/int64-key-table.ts';
import { Utf8KeyTable } from './tables/utf8-key-table.ts';

/** One 32-bit word of each row's value: that of row i is at `words[start + step * i]`. */
interface Word {
  readonly words: Int32Array;
  readonly start: number;
  readonly step: number;
}

/**
 * Numbers rows by the values of some columns: rows with the same values have the same number, 0, 1, 2, ... Nulls
 * are equal to each other, as are NaNs, and -0 to 0. Columns of any type but lists, structs and the like.
 *
 * A value is a few words of 32 bits (of a text its number among the texts), and a row is their sequence, which
 * tables of pairs reduce to a number. Rows with a null have tables of their own, with a word that says where.
 */
export class RowNumbers {
  readonly #texts: readonly (Utf8KeyTable | undefined)[];
  readonly #whole = new SequenceTable();
  readonly #withNulls = new SequenceTable();
  /** Numbers of the rows of each table, once rows with nulls have occurred. */
  #numbers: { readonly whole: number[]; readonly withNulls: number[] } | undefined;

  constructor(columns: readonly { readonly name: string; readonly type: DataType }[]) {
    this.#texts = columns.map(({ name, type }) => {
      if (isText(type)) return new Utf8KeyTable();
      if (wordsOfType(type) > 0) return undefined;
      throw new UsageError(`rows cannot be grouped by the column "${name}" of type ${type}`, {
        advice: 'Group by numbers, texts, dates, times or true and false',
      });
    });
  }

  /** The number of distinct rows. */
  get size(): number {
    return this.#whole.size + this.#withNulls.size;
  }

  /** The number of each row; new ones follow those of earlier calls. */
  add(columns: readonly Data[], rows: number): Uint32Array {
    const nullAt = nullMasks(columns, rows);
    const words = columns.flatMap((data, i) => wordsOf(data, this.#texts[i]));
    if (nullAt === undefined && this.#numbers === undefined) return this.#whole.add(words, rows);
    const numbers = (this.#numbers ??= {
      whole: Array.from({ length: this.#whole.size }, (_, code) => code),
      withNulls: [],
    });
    const codes = new Uint32Array(rows);
    const positions = rowsWith(nullAt, rows);
    this.#addRows(this.#whole, numbers.whole, gathered(words, positions.whole), positions.whole, codes);
    if (nullAt === undefined) return codes;
    const masks = { words: nullAt, start: 0, step: 1 };
    const own = gathered([...words, masks], positions.withNulls);
    clearNulls(columns, own, positions.withNulls);
    this.#addRows(this.#withNulls, numbers.withNulls, own, positions.withNulls, codes);
    return codes;
  }

  #addRows(
    table: SequenceTable,
    numbers: number[],
    words: readonly Word[],
    positions: Uint32Array,
    codes: Uint32Array,
  ): void {
    let next = this.#numbers === undefined ? 0 : this.#numbers.whole.length + this.#numbers.withNulls.length;
    const own = table.add(words, positions.length);
    while (numbers.length < table.size) numbers.push(next++);
    for (let i = 0; i < positions.length; i++) codes[positions[i]] = numbers[own[i]];
  }
}

/** Numbers sequences of words: pairs of words to codes, pairs of a code and the next word to codes, and so on. */
class SequenceTable {
  readonly #single = new Int32KeyTable();
  readonly #pairs: Int64KeyTable[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(words: readonly Word[], rows: number): Uint32Array {
    const codes = new Uint32Array(rows);
    if (words.length === 0) {
      this.#size = Math.max(this.#size, Math.min(rows, 1));
      return codes;
    }
    const [first, ...rest] = words;
    if (rest.length === 0) {
      this.#single.add({ type: 'int32', values: contiguous(first, rows) }, codes);
      this.#size = this.#single.size;
      return codes;
    }
    let left: Word = first;
    for (const [i, right] of rest.entries()) {
      const table = (this.#pairs[i] ??= new Int64KeyTable());
      table.add({ type: 'int64', halves: interleaved(left, right, rows) }, codes);
      left = { words: new Int32Array(codes.buffer), start: 0, step: 1 };
      this.#size = table.size;
    }
    return codes;
  }
}

function contiguous({ words, start, step }: Word, rows: number): Int32Array {
  if (step === 1) return words.subarray(start, start + rows);
  const values = new Int32Array(rows);
  for (let i = 0; i < rows; i++) values[i] = words[start + i * step];
  return values;
}

function interleaved(left: Word, right: Word, rows: number): Int32Array {
  const isPair = left.words === right.words && right.start === left.start + 1;
  if (isPair && left.step === 2 && right.step === 2)
    return left.words.subarray(left.start, left.start + 2 * rows);
  const halves = new Int32Array(2 * rows);
  for (let i = 0; i < rows; i++) {
    halves[2 * i] = left.words[left.start + i * left.step];
    halves[2 * i + 1] = right.words[right.start + i * right.step];
  }
  return halves;
}

function gathered(words: readonly Word[], positions: Uint32Array): Word[] {
  return words.map(({ words: from, start, step }) => {
    const own = new Int32Array(positions.length);
    for (let i = 0; i < own.length; i++) own[i] = from[start + positions[i] * step];
    return { words: own, start: 0, step: 1 };
  });
}

/** Bits by column, mod 32, of the nulls of each row; undefined where no row has one. */
function nullMasks(columns: readonly Data[], rows: number): Int32Array | undefined {
  let masks: Int32Array | undefined;
  for (const [i, data] of columns.entries()) {
    if (DataType.isNull(data.type) || !hasNulls(data)) continue;
    masks ??= new Int32Array(rows);
    for (let row = 0; row < rows; row++) if (isNullAt(data, row)) masks[row] |= 1 << (i & 31);
  }
  return masks;
}

function rowsWith(
  nullAt: Int32Array | undefined,
  rows: number,
): { readonly whole: Uint32Array; readonly withNulls: Uint32Array } {
  const [whole, withNulls] = [new Uint32Array(rows), new Uint32Array(rows)];
  let [wholeRows, nullRows] = [0, 0];
  for (let row = 0; row < rows; row++) {
    if (nullAt === undefined || nullAt[row] === 0) whole[wholeRows++] = row;
    else withNulls[nullRows++] = row;
  }
  return { whole: whole.subarray(0, wholeRows), withNulls: withNulls.subarray(0, nullRows) };
}

/** The words of a null are those of 0. Beyond 32 columns a mask says less than that a value is null. */
function clearNulls(columns: readonly Data[], words: readonly Word[], positions: Uint32Array): void {
  if (columns.length > 32) throw new UsageError('rows with nulls are grouped by at most 32 columns');
  let at = 0;
  for (const data of columns) {
    const own = words.slice(at, (at += isText(data.type) ? 1 : wordsOfType(data.type)));
    if (DataType.isNull(data.type) || !hasNulls(data)) continue;
    for (let i = 0; i < positions.length; i++)
      if (isNullAt(data, positions[i])) for (const word of own) word.words[i] = 0;
  }
}

function isText(type: DataType): boolean {
  if (DataType.isDictionary(type)) return isText(type.dictionary);
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type);
}

/** Words of a value; 0 for types whose values are no words. */
function wordsOfType(type: DataType): number {
  if (DataType.isNull(type) || DataType.isBool(type)) return 1;
  if (DataType.isInt(type)) return type.bitWidth === 64 ? 2 : 1;
  if (DataType.isFloat(type)) return type.precision === 2 ? 2 : 1;
  if (DataType.isDate(type)) return type.unit === 1 ? 2 : 1;
  if (DataType.isTimestamp(type)) return 2;
  if (DataType.isTime(type)) return type.bitWidth / 32;
  if (DataType.isDecimal(type)) return type.bitWidth / 32;
  return DataType.isFixedSizeBinary(type) && type.byteWidth % 4 === 0 ? type.byteWidth / 4 : 0;
}

function wordsOf(data: Data, texts: Utf8KeyTable | undefined): Word[] {
  const { type, length } = data;
  if (texts !== undefined) {
    const codes = new Uint32Array(length);
    texts.add(keysFromData(data, 'utf8'), codes);
    return [{ words: new Int32Array(codes.buffer), start: 0, step: 1 }];
  }
  const count = wordsOfType(type);
  const words = wordArray(data);
  return Array.from({ length: count }, (_, start) => ({ words, start, step: count }));
}

/** All words of a column, one value after the other. */
function wordArray(data: Data): Int32Array {
  const { type, length } = data;
  const raw: unknown = data.values;
  if (DataType.isNull(type)) return new Int32Array(length);
  if (DataType.isBool(type)) {
    const [bits, values] = [raw as Uint8Array, new Int32Array(length)];
    for (let i = 0; i < length; i++) values[i] = (bits[(data.offset + i) >> 3] >> ((data.offset + i) & 7)) & 1;
    return values;
  }
  if (DataType.isFloat(type)) return floatWords(raw as Float64Array | Float32Array | Uint16Array, length);
  const count = wordsOfType(type);
  const { buffer, byteOffset, BYTES_PER_ELEMENT: bytes } = raw as Int32Array;
  if (bytes < 4 && !DataType.isFixedSizeBinary(type))
    return Int32Array.from((raw as Int16Array).subarray(0, length));
  if (byteOffset % 4 === 0) return new Int32Array(buffer, byteOffset, count * length);
  return new Int32Array(buffer.slice(byteOffset, byteOffset + 4 * count * length));
}

/** The bits of floats, of which all NaNs have one form, and both zeros. */
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
