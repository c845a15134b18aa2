import { DataType } from 'apache-arrow';
import { CapacityError, UsageError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, takeKeys } from '../../engine/keys/key-column.ts';
import { Utf8KeyTable } from '../../engine/keys/tables/utf8-key-table.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import { isList } from '../../engine/values/value-texts.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import {
  type AttributeBatch,
  attributeBatch,
  columnNumbers,
  columnTokens,
  columnVectors,
} from './attribute-values.ts';
import type { AttributeEncoding, AttributeKind, EncodedColumn } from './encoding.ts';
import { partsOf, separators, utf8Keys, wordsOf } from './tokens.ts';

/** Rows by which the kinds of columns are chosen. */
const SAMPLE_ROWS = 10_000;

/** Most distinct values of a column, also of those that are left out as rare, and most bytes of them. */
const MOST_VALUES = 2 ** 21;
const MOST_BYTES = 2 ** 30;

/** Most distinct whole numbers of a category; others are quantities. */
const MOST_WHOLE_CATEGORIES = 50;

/** A column to encode; without a kind, it is chosen by the column's type and values. */
export interface WantedColumn {
  readonly name: string;
  readonly kind?: AttributeKind | undefined;
}

/**
 * Learns in one pass how columns become features; see EncodedColumn. It keeps the distinct values of each
 * column and their counts in memory, no rows. Throws UsageError for a column that is missing or has a type
 * without a kind, DataError for a value that does not fit, CapacityError for too many distinct values.
 */
export function learnEncoding(
  wanted: readonly WantedColumn[],
  { minCount }: { readonly minCount: number },
): Sink<AttributeEncoding> {
  return {
    name: 'learn-encoding',
    phase: 'read attributes',
    describe: () => ({ columns: wanted.map(({ name }) => name), minCount }),
    requiredColumns: () => wanted.map(({ name }) => name),
    async consume(input) {
      const types = wanted.map(({ name }) => fieldOf(input.schema, name).type);
      let sample: AttributeBatch[] = [];
      let counters: readonly ColumnCounter[] = [];
      let rows = 0;
      let begun = false;
      const begin = () => {
        begun = true;
        counters = wanted.map((column, at) => counterOf(column, types[at], sample));
        for (const batch of sample) for (const counter of counters) counter.add(batch);
        sample = [];
      };
      for await (const record of input) {
        const batch = attributeBatch(record);
        rows += batch.rows;
        for (const counter of counters) counter.add(batch);
        if (begun) continue;
        sample.push(batch);
        if (rows >= SAMPLE_ROWS) begin();
      }
      if (!begun) begin();
      return joined(counters, rows, minCount);
    },
  };
}

/** The features of one column. */
interface Learned {
  readonly column: EncodedColumn;
  readonly values: KeyColumn & { readonly type: 'utf8' };
  readonly weights: Float32Array;
}

interface ColumnCounter {
  add(batch: AttributeBatch): void;
  /** `rows`: number of all rows. `first`: the column's first feature. */
  learned(first: number, rows: number, minCount: number): Learned;
}

/** The columns one after the other, after feature 0. */
function joined(counters: readonly ColumnCounter[], rows: number, minCount: number): AttributeEncoding {
  const all: Learned[] = [];
  let features = 1;
  for (const counter of counters) {
    const learned = counter.learned(features, rows, minCount);
    features += learned.column.features;
    all.push(learned);
  }
  const weights = new Float32Array(features);
  weights[0] = 1;
  for (const { column, weights: own } of all) weights.set(own, column.first);
  const values = concatKeys('utf8', [utf8Keys(['']), ...all.map((learned) => learned.values)]);
  return { columns: all.map(({ column }) => column), minCount, values, weights } as AttributeEncoding;
}

function counterOf(
  { name, kind }: WantedColumn,
  type: DataType,
  sample: readonly AttributeBatch[],
): ColumnCounter {
  const chosen = kind ?? chooseKind(name, type, sample);
  requireType(name, chosen, type);
  if (chosen === 'number') return new NumberCounter(name);
  if (chosen === 'vector') return new VectorCounter(name);
  const separator = chosen === 'values' && isText(type) ? separatorOf(textsOf(name, sample)) : undefined;
  return new TokenCounter(name, chosen, chosen === 'values' && isText(type) ? (separator ?? '|') : separator);
}

function isText(type: DataType): boolean {
  if (DataType.isDictionary(type)) return isText(type.dictionary);
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isUtf8View(type);
}

function isWhole(type: DataType): boolean {
  return DataType.isInt(type) || (DataType.isDictionary(type) && DataType.isInt(type.dictionary));
}

function isNumeric(type: DataType): boolean {
  return (
    isWhole(type) ||
    DataType.isFloat(type) ||
    DataType.isDecimal(type) ||
    DataType.isDate(type) ||
    DataType.isTimestamp(type)
  );
}

/** Throws UsageError for a kind that values of the type cannot have. */
function requireType(name: string, kind: AttributeKind, type: DataType): void {
  const element = isList(type) ? (type.children[0].type as DataType) : undefined;
  const single = isText(type) || isNumeric(type) || DataType.isBool(type) || DataType.isNull(type);
  const fits = {
    category: single,
    number: single,
    values: isText(type) || (element !== undefined && (isText(element) || isWhole(element))),
    words: isText(type) || (element !== undefined && (isText(element) || isWhole(element))),
    vector: element !== undefined && isNumeric(element),
  };
  if (fits[kind]) return;
  throw new UsageError(`the column "${name}" is ${String(type)}, which cannot be an attribute (${kind})`, {
    column: name,
    advice: 'Leave it out of columns, or name another kind: category, values, words, number or vector',
  });
}

/**
 * The kind of a column by its type, and of text and whole numbers by the values of the first rows: a
 * separator that makes of most texts parts that repeat, distinct texts of several words, many whole numbers.
 */
function chooseKind(name: string, type: DataType, sample: readonly AttributeBatch[]): AttributeKind {
  if (DataType.isFixedSizeList(type)) return 'vector';
  if (isList(type)) return DataType.isFloat(type.children[0].type) ? 'vector' : 'values';
  if (DataType.isBool(type) || DataType.isNull(type)) return 'category';
  if (isWhole(type)) {
    const distinct = new Set<unknown>();
    for (const batch of sample) {
      const valueAt = batch.column(name);
      for (let row = 0; row < batch.rows; row++) {
        const value = valueAt(row);
        if (value !== null) distinct.add(value);
      }
    }
    return distinct.size > MOST_WHOLE_CATEGORIES ? 'number' : 'category';
  }
  if (!isText(type)) return isNumeric(type) ? 'number' : 'category';
  const texts = textsOf(name, sample);
  if (separatorOf(texts) !== undefined) return 'values';
  const words = texts.reduce((sum, text) => sum + wordsOf(text).length, 0) / Math.max(1, texts.length);
  const distinct = new Set(texts).size;
  return words >= 5 || (words >= 1.5 && distinct > texts.length / 2) ? 'words' : 'category';
}

function textsOf(name: string, sample: readonly AttributeBatch[]): string[] {
  const texts: string[] = [];
  for (const batch of sample) {
    const valueAt = batch.column(name);
    for (let row = 0; row < batch.rows; row++) {
      const value = valueAt(row);
      if (typeof value === 'string' && value.trim() !== '') texts.push(value);
    }
  }
  return texts;
}

/**
 * The separator of several values: one that occurs in a tenth of the texts or more, and whose parts repeat.
 * Parts between commas and semicolons have at most two words in the mean, or they are clauses.
 */
function separatorOf(texts: readonly string[]): string | undefined {
  return separators.find((separator) => {
    const several = texts.filter((text) => text.includes(separator));
    if (several.length === 0 || 10 * several.length < texts.length) return false;
    const parts = several.flatMap((text) => partsOf(text, separator));
    if (2 * new Set(parts).size > parts.length) return false;
    const words = parts.reduce((sum, part) => sum + part.split(/\s+/).length, 0);
    return separator === '|' || words <= 2 * parts.length;
  });
}

/** Counts the rows in which each value or word occurs. */
class TokenCounter implements ColumnCounter {
  readonly #column: { readonly name: string; readonly kind: 'category' | 'values' | 'words' };
  readonly #separator: string | undefined;
  readonly #table = new Utf8KeyTable();
  #counts = new Uint32Array(1024);
  /** The last row in which each value occurred, from 1, so that a row counts once. */
  #last = new Uint32Array(1024);
  #rows = 0;
  #missing = 0;

  constructor(name: string, kind: 'category' | 'values' | 'words', separator: string | undefined) {
    this.#column = { name, kind };
    this.#separator = separator;
  }

  add(batch: AttributeBatch): void {
    const { name } = this.#column;
    const { offsets, keys } = columnTokens({ ...this.#column, separator: this.#separator }, batch);
    const codes = new Uint32Array(offsets[batch.rows]);
    this.#table.add(keys, codes);
    this.#requireRoom(name);
    for (let row = 0; row < batch.rows; row++) {
      this.#rows++;
      if (offsets[row] === offsets[row + 1]) this.#missing++;
      for (let at = offsets[row]; at < offsets[row + 1]; at++) {
        const code = codes[at];
        if (this.#last[code] === this.#rows) continue;
        this.#last[code] = this.#rows;
        this.#counts[code]++;
      }
    }
  }

  #requireRoom(name: string): void {
    const { size, textBytes } = this.#table;
    if (size > MOST_VALUES || textBytes > MOST_BYTES)
      throw new CapacityError(
        `the column "${name}" has more than ${formatCount(Math.min(size, MOST_VALUES))} distinct values`,
        {
          phase: 'read attributes',
          column: name,
          advice: 'Leave it out of columns, or give it fewer values',
        },
      );
    if (size <= this.#counts.length) return;
    [this.#counts, this.#last] = [this.#counts, this.#last].map((from) => {
      const to = new Uint32Array(2 * size);
      to.set(from);
      return to;
    });
  }

  learned(first: number, rows: number, minCount: number): Learned {
    const kept = this.#table.ascending().filter((code) => this.#counts[code] >= minCount);
    const column = {
      ...this.#column,
      ...(this.#separator !== undefined && { separator: this.#separator }),
      first,
      features: kept.length,
      rare: this.#table.size - kept.length,
      missing: this.#missing,
    } as EncodedColumn;
    const idf = (code: number) => 1 + Math.log((1 + rows) / (1 + this.#counts[code]));
    const weights = Float32Array.from(kept, (code) => (column.kind === 'words' ? idf(code) : 1));
    return { column, values: takeKeys(this.#table.keys(), kept) as Learned['values'], weights };
  }
}

/** Mean and deviation, by Welford's sums. */
class NumberCounter implements ColumnCounter {
  readonly #name: string;
  #count = 0;
  #missing = 0;
  #mean = 0;
  #squares = 0;

  constructor(name: string) {
    this.#name = name;
  }

  add(batch: AttributeBatch): void {
    const numberAt = columnNumbers(this.#name, batch);
    for (let row = 0; row < batch.rows; row++) {
      const number = numberAt(row);
      if (Number.isNaN(number)) {
        this.#missing++;
        continue;
      }
      const difference = number - this.#mean;
      this.#mean += difference / ++this.#count;
      this.#squares += difference * (number - this.#mean);
    }
  }

  learned(first: number): Learned {
    // Rounded, so that the order of the rows does not change the last bits.
    const [mean, deviation] = [this.#mean, Math.sqrt(this.#squares / Math.max(1, this.#count))].map(
      Math.fround,
    );
    const missing = this.#missing;
    const features = missing > 0 ? 2 : 1;
    const column = {
      name: this.#name,
      kind: 'number',
      first,
      features,
      missing,
      mean,
      deviation: deviation || 1,
    };
    return labelled(column as EncodedColumn, ['', 'missing'].slice(0, features));
  }
}

class VectorCounter implements ColumnCounter {
  readonly #name: string;
  #length: number | undefined;
  #count = 0;
  #missing = 0;
  #squares = 0;

  constructor(name: string) {
    this.#name = name;
  }

  add(batch: AttributeBatch): void {
    const vectorAt = columnVectors(this.#name, batch, this.#length);
    for (let row = 0; row < batch.rows; row++) {
      const vector = vectorAt(row);
      if (vector === undefined) {
        this.#missing++;
        continue;
      }
      this.#length = vector.length;
      this.#count++;
      for (let k = 0; k < vector.length; k++) this.#squares += vector[k] ** 2;
    }
  }

  learned(first: number): Learned {
    const features = this.#length ?? 0;
    const scale = Math.fround(Math.sqrt(this.#count / this.#squares));
    const column: EncodedColumn = {
      name: this.#name,
      kind: 'vector',
      first,
      features,
      missing: this.#missing,
      scale: Number.isFinite(scale) ? scale : 1,
    };
    return labelled(
      column,
      Array.from({ length: features }, (_, k) => String(k)),
    );
  }
}

function labelled(column: EncodedColumn, labels: readonly string[]): Learned {
  return { column, values: utf8Keys(labels), weights: new Float32Array(labels.length).fill(1) };
}
