import { type Data, DataType } from 'apache-arrow';
import { hasNulls, isNullAt } from './arrow-keys.ts';
import { UNKNOWN_KEY } from './key-column.ts';
import { type Word, WordReader } from './row-words.ts';
import { NearInt32Table, WordsTable } from './tables/words-table.ts';

/** Returned by `find` for an unknown row. */
export const UNKNOWN_ROW = UNKNOWN_KEY;

/**
 * Numbers rows by the values of some columns: rows with the same values have the same number, 0, 1, 2, ... in
 * the order of first occurrence. Nulls equal each other, as do NaNs, and -0 equals 0. Columns may have any
 * type except lists, structs and similar; a column may have a dictionary in some batches and plain values in
 * others.
 *
 * A value is one or a few 32-bit words, and a row is their sequence. Rows with a null have their own table;
 * extra words mark which values are null.
 */
export class RowNumbers {
  readonly #readers: readonly WordReader[];
  readonly #whole: SequenceTable;
  readonly #withNulls: SequenceTable;
  /** The row numbers of each of the two tables; undefined until the first row with a null. */
  #numbers: { readonly whole: Numbers; readonly withNulls: Numbers; size: number } | undefined;

  /** `expected`: the number of rows that will be added, if it is known. */
  constructor(columns: readonly { readonly name: string; readonly type: DataType }[], expected = 0) {
    this.#readers = columns.map((column) => new WordReader(column));
    const width = this.#readers.reduce((sum, { count }) => sum + count, 0);
    this.#whole = new SequenceTable(width, expected);
    this.#withNulls = new SequenceTable(width + Math.ceil(columns.length / 32));
  }

  /** The number of distinct rows. */
  get size(): number {
    return this.#numbers?.size ?? this.#whole.size;
  }

  /** The number of each row, in `codes`. New rows get the next free numbers. */
  add(columns: readonly Data[], rows: number, codes = new Uint32Array(rows)): Uint32Array {
    const words = this.#words(columns, true);
    const nullable = nullableOf(columns);
    if (nullable.length === 0 && this.#numbers === undefined) {
      this.#whole.add(words, codes);
      return codes;
    }
    const { whole, withNulls } = this.#split(words, columns, rows);
    const numbers = (this.#numbers ??= {
      whole: Numbers.upTo(this.#whole.size),
      withNulls: Numbers.upTo(0),
      size: this.#whole.size,
    });
    const own = new Uint32Array(rows);
    this.#whole.add(whole.words, own.subarray(0, whole.positions.length));
    this.#withNulls.add(withNulls.words, own.subarray(whole.positions.length));
    // Numbers new rows in row order, from both tables.
    let [nextWhole, nextNull] = [0, 0];
    for (let row = 0; row < rows; row++) {
      const isWhole = nextWhole < whole.positions.length && whole.positions[nextWhole] === row;
      const code = own[isWhole ? nextWhole++ : whole.positions.length + nextNull++];
      const table = isWhole ? numbers.whole : numbers.withNulls;
      if (code === table.size) table.push(numbers.size++);
      codes[row] = table.of[code];
    }
    return codes;
  }

  /** The number of each row; UNKNOWN_ROW for an unknown one. */
  find(columns: readonly Data[], rows: number): Uint32Array {
    const codes = new Uint32Array(rows);
    const words = this.#words(columns, false);
    if (nullableOf(columns).length === 0) {
      this.#whole.find(words, codes);
      if (this.#numbers !== undefined) this.#numbers.whole.replace(codes);
      return codes;
    }
    const { whole, withNulls } = this.#split(words, columns, rows);
    const tables = [
      { ...whole, table: this.#whole, numbers: this.#numbers?.whole },
      { ...withNulls, table: this.#withNulls, numbers: this.#numbers?.withNulls },
    ];
    for (const { positions, words: own, table, numbers } of tables) {
      const found = new Uint32Array(positions.length);
      table.find(own, found);
      numbers?.replace(found);
      for (let i = 0; i < found.length; i++) codes[positions[i]] = found[i];
    }
    return codes;
  }

  /** Ends the numbering, whose memory the next one takes. */
  giveBack(): void {
    this.#whole.giveBack();
    this.#withNulls.giveBack();
  }

  #words(columns: readonly Data[], adds: boolean): Word[] {
    return columns.flatMap((data, i) => this.#readers[i].read(data, adds));
  }

  /** Separates rows without and with nulls, with their words. */
  #split(words: readonly Word[], columns: readonly Data[], rows: number) {
    const masks = nullMasks(columns, rows);
    const [whole, withNulls] = [new Uint32Array(rows), new Uint32Array(rows)];
    const isNull = masks.length === 1 ? masks[0].words : anyOf(masks, rows);
    let [wholeRows, nullRows] = [0, 0];
    for (let row = 0; row < rows; row++) {
      if (isNull[row] === 0) whole[wholeRows++] = row;
      else withNulls[nullRows++] = row;
    }
    const positions = withNulls.subarray(0, nullRows);
    const own = gathered([...words, ...masks], positions);
    let at = 0;
    for (const [i, data] of columns.entries()) {
      const { count } = this.#readers[i];
      clearNulls(data, own.slice(at, (at += count)), positions);
    }
    const others = whole.subarray(0, wholeRows);
    return {
      whole: { positions: others, words: gathered(words, others) },
      withNulls: { positions, words: own },
    };
  }
}

/** A growing array of row numbers by code. */
class Numbers {
  of: Uint32Array;
  size: number;

  private constructor(of: Uint32Array) {
    [this.of, this.size] = [of, of.length];
  }

  static upTo(size: number): Numbers {
    const numbers = new Uint32Array(size);
    for (let i = 0; i < size; i++) numbers[i] = i;
    return new Numbers(numbers);
  }

  push(number: number): void {
    if (this.size === this.of.length) {
      const grown = new Uint32Array(Math.max(64, 2 * this.size));
      grown.set(this.of);
      this.of = grown;
    }
    this.of[this.size++] = number;
  }

  /** Replaces codes by row numbers; UNKNOWN_KEY stays. */
  replace(codes: Uint32Array): void {
    for (let i = 0; i < codes.length; i++) if (codes[i] !== UNKNOWN_KEY) codes[i] = this.of[codes[i]];
  }
}

/** Numbers sequences of `width` words in the order of first occurrence. Sequences without words are equal. */
class SequenceTable {
  readonly #table: NearInt32Table | WordsTable;
  #joined = new Int32Array(0);

  constructor(width: number, expected = 0) {
    this.#table = width > 1 ? new WordsTable(width, expected) : new NearInt32Table();
  }

  get size(): number {
    return this.#table.size;
  }

  add(words: readonly Word[], codes: Uint32Array): void {
    this.#table.add(this.#join(words, codes.length), codes);
  }

  giveBack(): void {
    if (this.#table instanceof WordsTable) this.#table.giveBack();
  }

  find(words: readonly Word[], codes: Uint32Array): void {
    this.#table.find(this.#join(words, codes.length), codes);
  }

  /**
   * Returns the words of all rows, row by row. If they are stored this way already, the result is a view of
   * them; else it is in memory that the next call reuses.
   */
  #join(words: readonly Word[], rows: number): Int32Array {
    if (words.length === 0) return new Int32Array(rows);
    const [first] = words;
    const width = words.length;
    if (words.every((word, w) => word.words === first.words && word.start === w && word.step === width))
      return first.words.subarray(0, rows * width);
    if (this.#joined.length < rows * width) this.#joined = new Int32Array(rows * width);
    const joined = this.#joined;
    for (const [w, { words: from, start, step }] of words.entries())
      for (let i = 0; i < rows; i++) joined[i * width + w] = from[start + i * step];
    return joined.subarray(0, rows * width);
  }
}

function gathered(words: readonly Word[], positions: Uint32Array): Word[] {
  return words.map(({ words: from, start, step }) => {
    const own = new Int32Array(positions.length);
    for (let i = 0; i < own.length; i++) own[i] = from[start + positions[i] * step];
    return { words: own, start: 0, step: 1 };
  });
}

function nullableOf(columns: readonly Data[]): Data[] {
  return columns.filter((data) => !DataType.isNull(data.type) && hasNulls(data));
}

/** A bit mask of each row's null columns, 32 columns a word. */
function nullMasks(columns: readonly Data[], rows: number): Word[] {
  return Array.from({ length: Math.ceil(columns.length / 32) }, (_, at) => {
    const words = new Int32Array(rows);
    for (const [bit, data] of columns.slice(32 * at, 32 * at + 32).entries()) {
      if (nullableOf([data]).length === 0) continue;
      for (let row = 0; row < rows; row++) if (isNullAt(data, row)) words[row] |= 1 << bit;
    }
    return { words, start: 0, step: 1 };
  });
}

function anyOf(masks: readonly Word[], rows: number): Int32Array {
  const any = new Int32Array(rows);
  for (const { words } of masks) for (let row = 0; row < rows; row++) any[row] |= words[row];
  return any;
}

/** The words of a null are 0. */
function clearNulls(data: Data, words: readonly Word[], positions: Uint32Array): void {
  if (nullableOf([data]).length === 0) return;
  for (let i = 0; i < positions.length; i++)
    if (isNullAt(data, positions[i])) for (const word of words) word.words[i] = 0;
}
