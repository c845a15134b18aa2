import {
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
  type Data,
  DataType,
  Field,
  Float64,
  Int32,
  makeData,
} from 'apache-arrow';
import { expandDictionary } from '../stream/dictionary-values.ts';
import { joinData } from '../stream/join-data.ts';
import { takeData } from '../stream/take-data.ts';
import { compareRows, type KeyWords, type SortKey, SortKeys, wordAt, type KeyWord } from './sort-keys.ts';
import { sortRows } from './sort-rows.ts';
import { commonBytes, isText, textsOf } from './sort-texts.ts';

/**
 * The position of a batch in the input, by which rows with equal keys are ordered: by task, then by row
 * number.
 */
export interface RowsPosition {
  /** The number of the task, in the order of the input. */
  readonly task: number;
  /** The task's row number of the batch's row 0. */
  readonly firstRow: number;
}

const [TASK, ROW] = ['task', 'row'];
const keyName = (key: number) => `key ${key}`;

/** The keys that order samples and bounds. */
function sampleKeysOf(keys: readonly SortKey[]): SortKey[] {
  return keys.map((key, i) => ({ ...key, column: keyName(i) }));
}

/**
 * The keys and positions of a sample of rows: one of every `every` rows of the task, chosen by a hash, so
 * that a periodic pattern of rows does not bias the sample. Dictionary columns become plain.
 */
export function sampleKeys(
  batch: RecordBatch,
  keys: readonly SortKey[],
  { task, firstRow, every }: RowsPosition & { readonly every: number },
): RecordBatch {
  const rows = sampledRows(firstRow, batch.numRows, every, task);
  const { fields } = batch.schema;
  const columns = keys.map(({ column }) => {
    const taken = takeData(batch.data.children[fields.findIndex(({ name }) => name === column)], rows);
    return DataType.isDictionary(taken.type) ? expandDictionary(taken) : taken;
  });
  const tasks = makeData({ type: new Int32(), data: new Int32Array(rows.length).fill(task) });
  const numbers = makeData({ type: new Float64(), data: Float64Array.from(rows, (row) => firstRow + row) });
  return batchOf([...columns, tasks, numbers], rows.length);
}

function sampledRows(firstRow: number, rows: number, every: number, task: number): Uint32Array {
  const sampled: number[] = [];
  for (let stride = Math.floor(firstRow / every); stride * every < firstRow + rows; stride++) {
    const mixed = Math.imul(Math.imul(stride ^ (task << 16), 0x9e3779b1) ^ (stride >>> 15), 0x85ebca6b) >>> 0;
    const row = stride * every + Math.floor((mixed / 2 ** 32) * every) - firstRow;
    if (row >= 0 && row < rows) sampled.push(row);
  }
  return Uint32Array.from(sampled);
}

/** The schema of samples and bounds for batches with these columns. */
export function sampleSchema({ fields }: Schema, keys: readonly SortKey[]): Schema {
  const types = keys.map(({ column }) => {
    const { type } = fields.find(({ name }) => name === column) as Field;
    return DataType.isDictionary(type) ? type.dictionary : type;
  });
  return schemaOf([...types, new Int32(), new Float64()]);
}

function schemaOf(types: readonly DataType[]): Schema {
  const keys = types.length - 2;
  const names = types.map((_, i) => (i < keys ? keyName(i) : i === keys ? TASK : ROW));
  return new Schema(types.map((type, i) => new Field(names[i], type, i < keys)));
}

function batchOf(columns: readonly Data[], length: number): RecordBatch {
  const schema = schemaOf(columns.map(({ type }) => type));
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length, nullCount: 0, children: [...columns] }));
}

/**
 * The bounds between parts: the first row of each part except the first. They are chosen so that parts have
 * about the same number of rows. The result has at most `parts` - 1 rows in order, with the columns of the
 * samples. All samples must have the same `every`.
 */
export function boundsOf(
  samples: readonly RecordBatch[],
  keys: readonly SortKey[],
  parts: number,
): RecordBatch {
  const [first] = samples;
  const chunks = first.schema.fields.map((_, i) => samples.map(({ data }) => data.children[i]));
  const columns = chunks.map((own) => joinData(own[0].type, own));
  const [{ length: rows }] = columns;
  const whole = batchOf(columns, rows);
  const all = [...sampleKeysOf(keys), { column: TASK }, { column: ROW }];
  const order = sortRows(new SortKeys(whole.schema, all).of(whole));
  const bounds = new Set<number>();
  for (let part = 1; part < parts; part++) bounds.add(order[Math.floor((part * rows) / parts)]);
  const positions = rows === 0 ? new Uint32Array(0) : Uint32Array.from(bounds);
  return batchOf(
    columns.map((column) => takeData(column, positions)),
    positions.length,
  );
}

/**
 * The part of each row: the number of bounds that come before the row or equal it. If each part is sorted
 * stably, the parts in order are the stably sorted rows.
 */
export function rangeParts(
  batch: RecordBatch,
  keys: readonly SortKey[],
  bounds: RecordBatch,
  position: RowsPosition,
): Uint16Array {
  if (bounds.numRows === 0) return new Uint16Array(batch.numRows);
  const prefixes = keys.map((_, i) => prefixOf(bounds.data.children[i]));
  const words = new SortKeys(batch.schema, keys, prefixes).of(batch);
  const ofBounds = new SortKeys(bounds.schema, sampleKeysOf(keys), prefixes).of(bounds);
  const search = new BoundSearch(words, ofBounds, rowsOfBounds(bounds, keys.length, position));
  const { parts, undecided, ends, nextWord } = new LeadingWords(words, ofBounds).parts();
  for (const row of undecided)
    parts[row] = search.partOf(row, { word: nextWord, from: parts[row], to: ends[parts[row]] });
  return parts;
}

/** The common prefix of all texts of a column, in bytes; undefined for other columns, and if it is empty. */
function prefixOf(column: Data): Uint8Array | undefined {
  if (!isText(column.type)) return undefined;
  const texts = Int32Array.from({ length: column.length }, (_, row) => row);
  const all = { ...textsOf(column), index: texts.filter((row) => column.getValid(row)) };
  const common = all.index.length === 0 ? 0 : commonBytes(all);
  const start = all.offsets[all.index[0]];
  return common === 0 ? undefined : all.bytes.subarray(start, start + common);
}

/**
 * For rows whose keys equal a bound's keys: the index in the batch from which they are no longer before the
 * bound. Infinite, with a sign, if all rows of the batch are before or after the bound's position.
 */
function rowsOfBounds(
  { data: { children }, numRows }: RecordBatch,
  keys: number,
  { task, firstRow }: RowsPosition,
): Float64Array {
  const [tasks, rows]: readonly Data[] = children.slice(keys);
  return Float64Array.from({ length: numRows }, (_, bound) => {
    const own = tasks.values[bound];
    return own === task ? rows.values[bound] - firstRow : own < task ? -Infinity : Infinity;
  });
}

/** A range of bounds, [from, to), that equal a row in all words before `word`. */
interface EqualBounds {
  readonly word: number;
  readonly from: number;
  readonly to: number;
}

/** Finds the part of a row by all words, texts and the row's position. */
class BoundSearch {
  readonly #keys: KeyWords;
  readonly #bounds: KeyWords;
  readonly #rows: Float64Array;

  constructor(keys: KeyWords, bounds: KeyWords, rows: Float64Array) {
    [this.#keys, this.#bounds, this.#rows] = [keys, bounds, rows];
  }

  partOf(row: number, { word, from, to }: EqualBounds): number {
    const { words, texts } = this.#keys;
    let text = 0;
    for (let at = word; at < words.length; at++) {
      const value = wordAt(words[at], row);
      from = boundBefore(this.#bounds.words[at], value, from, to);
      to = boundBefore(this.#bounds.words[at], value + 1, from, to);
      if (from === to) return from;
      while (text < texts.length && texts[text].end <= at) text++;
      if (texts[text]?.end === at + 1 && texts[text].long === value) return this.#partByTexts(row, from, to);
    }
    while (from < to) {
      const bound = (from + to) >> 1;
      if (row < this.#rows[bound]) to = bound;
      else from = bound + 1;
    }
    return from;
  }

  #partByTexts(row: number, from: number, to: number): number {
    while (from < to) {
      const bound = (from + to) >> 1;
      const order = compareRows(this.#keys, row, this.#bounds, bound) || row - this.#rows[bound];
      if (order < 0) to = bound;
      else from = bound + 1;
    }
    return from;
  }
}

/**
 * Finds the first bound in [from, to) whose word is at least `value`, by binary search. These bounds have
 * equal earlier words.
 */
function boundBefore(bounds: Uint32Array | number, value: number, from: number, to: number): number {
  while (from < to) {
    const bound = (from + to) >> 1;
    if (wordAt(bounds, bound) < value) from = bound + 1;
    else to = bound;
  }
  return from;
}

/** Bits of an integer that a double holds exactly. */
const DOUBLE_BITS = 53;
const CELLS = 1 << 11;

/** One word's share of the number that encodes the leading words of a row. */
interface LeadingWord {
  readonly word: number;
  /** Smallest and largest value among the bounds. */
  readonly least: number;
  readonly most: number;
  /** Low bits that are dropped from the last word. */
  readonly shift: number;
  /**
   * The number of distinct values of the word, including one value for all words below the smallest and one
   * for all words above the largest.
   */
  readonly values: number;
}

interface PartsByWords {
  readonly parts: Uint16Array;
  readonly undecided: Uint32Array;
  readonly ends: Uint16Array;
  readonly nextWord: number;
}

/**
 * Assigns rows to parts, the ranges between sorted bounds, by comparing one number for each row. The number
 * encodes the leading words that fit in a double, each limited to the range of the bounds' words. If the
 * numbers of a row and a bound differ, they have the order of the words. If they are equal, further words
 * must be compared.
 */
class LeadingWords {
  readonly #keys: KeyWords;
  readonly #leading: readonly LeadingWord[];
  readonly #nextWord: number;
  readonly #bounds: Float64Array;

  constructor(keys: KeyWords, bounds: KeyWords) {
    this.#keys = keys;
    const { leading, next } = leadingWords(keys, bounds);
    this.#leading = leading;
    this.#nextWord = next;
    this.#bounds = leads(bounds, this.#leading);
  }

  /**
   * Compares the numbers of all rows with the numbers of the bounds.
   *
   * - `parts`: for each row, the number of bounds below it.
   * - `undecided`: rows whose number equals a bound's number, so that words from `nextWord` on must be
   *   compared. Such a row equals the bounds from parts[row] to ends[parts[row]] - 1 in all words before
   *   `nextWord`.
   */
  parts(): PartsByWords {
    const [bounds, rows] = [this.#bounds, leads(this.#keys, this.#leading)];
    const [least, most] = [bounds[0], bounds[bounds.length - 1]];
    const scale = most > least ? (CELLS - 1) / (most - least) : 0;
    const starts = cellStarts(bounds, least, scale);
    const parts = new Uint16Array(rows.length);
    const undecided = new Uint32Array(rows.length);
    let count = 0;
    for (let row = 0; row < rows.length; row++) {
      const lead = rows[row];
      if (lead > most) parts[row] = bounds.length;
      if (lead < least || lead > most) continue;
      const cell = ((lead - least) * scale) | 0;
      let bound = starts[cell];
      for (let end = starts[cell + 1]; bound < end;) {
        const middle = (bound + end) >> 1;
        if (bounds[middle] < lead) bound = middle + 1;
        else end = middle;
      }
      parts[row] = bound;
      if (bounds[bound] === lead) undecided[count++] = row;
    }
    const ends = Uint16Array.from(bounds, (_, bound) => bound + 1);
    for (let bound = ends.length - 2; bound >= 0; bound--)
      if (bounds[bound] === bounds[bound + 1]) ends[bound] = ends[bound + 1];
    return { parts, undecided: undecided.subarray(0, count), ends, nextWord: this.#nextWord };
  }
}

/** The first bound of each cell of the bounds' range. */
function cellStarts(bounds: Float64Array, least: number, scale: number): Uint16Array {
  const starts = new Uint16Array(CELLS + 1);
  for (const bound of bounds) starts[(((bound - least) * scale) | 0) + 1]++;
  for (let cell = 0; cell < CELLS; cell++) starts[cell + 1] += starts[cell];
  return starts;
}

/** The leading words that fit, and the first word that is not included completely. */
function leadingWords(
  { words, texts }: KeyWords,
  bounds: KeyWords,
): { leading: LeadingWord[]; next: number } {
  const leading: LeadingWord[] = [];
  let room = 2 ** DOUBLE_BITS;
  // A text's last word is not included: bytes of the text that are not in its words are compared before the
  // words of the next key.
  const end = texts.length === 0 ? words.length : texts[0].end - 1;
  for (let word = 0; word < end; word++) {
    const [least, most] = rangeOf(bounds.words[word], bounds.rows);
    // The word is the same in all rows and bounds, so it decides nothing.
    if (least === most && words[word] === least) continue;
    const isWhole = most - least + 3 <= room;
    const shift = isWhole ? 0 : Math.ceil(Math.log2((most - least + 3) / room)) + 1;
    const values = Math.floor((most - least) / 2 ** shift) + 3;
    // In JavaScript a shift by 32 bits does nothing.
    if (values <= room && shift < 32) leading.push({ word, least, most, shift, values });
    if (!isWhole) return { leading, next: word };
    room = Math.floor(room / values);
  }
  return { leading, next: end };
}

function rangeOf(word: KeyWord, rows: number): [least: number, most: number] {
  let [least, most] = [Infinity, -Infinity];
  for (let row = 0; row < rows; row++) {
    const value = wordAt(word, row);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

function leads({ words, rows }: KeyWords, leading: readonly LeadingWord[]): Float64Array {
  const numbers = new Float64Array(rows);
  for (const part of leading) {
    const word = words[part.word];
    if (typeof word === 'number') addConstant(numbers, word, part);
    else addWord(numbers, word, part);
  }
  return numbers;
}

function addWord(
  numbers: Float64Array,
  word: Uint32Array,
  { least, most, shift, values }: LeadingWord,
): void {
  const above = ((most - least) >>> shift) + 2;
  for (let row = 0; row < numbers.length; row++) {
    const value = word[row];
    const own = value < least ? 0 : value > most ? above : ((value - least) >>> shift) + 1;
    numbers[row] = numbers[row] * values + own;
  }
}

function addConstant(
  numbers: Float64Array,
  value: number,
  { least, most, shift, values }: LeadingWord,
): void {
  const above = ((most - least) >>> shift) + 2;
  const own = value < least ? 0 : value > most ? above : ((value - least) >>> shift) + 1;
  for (let row = 0; row < numbers.length; row++) numbers[row] = numbers[row] * values + own;
}
