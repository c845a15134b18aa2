import { RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { type Data, DataType, Field, Float64, Int32, makeData } from 'apache-arrow';
import { expandDictionary } from '../stream/dictionary-values.ts';
import { joinData } from '../stream/join-data.ts';
import { takeData } from '../stream/take-data.ts';
import { LeadingWords } from './leading-words.ts';
import { compareRows, type KeyWords, type SortKey, SortKeys, wordAt } from './sort-keys.ts';
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
