import { DataError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { formatCount } from '../../engine/format.ts';
import { type KeyColumn, keyText } from '../../engine/keys/key-column.ts';
import type { AttributeMatrix } from './attribute-matrix.ts';

/**
 * How the values of a column become numbers:
 *
 *     category   one of several values, text or whole numbers      a feature for each value
 *     values     several values, as a list or "Drama|War"          a feature for each value
 *     words      the words of a text, or a list of words           a feature for each word
 *     number     a quantity                                        one feature, one more for missing numbers
 *     vector     a list of numbers of equal length                 a feature for each position
 */
export const attributeKinds = ['category', 'values', 'words', 'number', 'vector'] as const;

export type AttributeKind = (typeof attributeKinds)[number];

/**
 * A column and its features `first`, `first + 1`, ... The numbers of a row have a sum of squares of about 1 in
 * each column, so that a text of 100 words weighs as much as one category:
 *
 *     category   1
 *     values     1 / √(values of the row)
 *     words      (1 + ln count) x idf, divided by the norm of the row; idf = 1 + ln((1 + n) / (1 + rows with the word))
 *     number     (number - mean) / deviation, at most `MOST_DEVIATIONS`; a missing one is 1 in the second feature
 *     vector     the numbers times `scale`, by which the mean square of the norms becomes 1
 *
 * A missing or unknown value has no feature (but see number).
 */
export type EncodedColumn = {
  readonly name: string;
  readonly first: number;
  readonly features: number;
  /** Rows without a value. */
  readonly missing: number;
} & (
  | { readonly kind: 'category'; readonly rare: number }
  | { readonly kind: 'values'; readonly rare: number; readonly separator?: string }
  | { readonly kind: 'words'; readonly rare: number }
  | { readonly kind: 'number'; readonly mean: number; readonly deviation: number }
  | { readonly kind: 'vector'; readonly scale: number }
);

/** Rows whose numbers or norms are more than this number of deviations from the mean are moved to it. */
export const MOST_DEVIATIONS = 5;

/** How attributes become the rows of an AttributeMatrix. Feature 0 is 1 in every row. */
export interface AttributeEncoding {
  readonly columns: readonly EncodedColumn[];
  /** Values that occur in fewer rows have no feature. */
  readonly minCount: number;
  /** The value of each feature: the position in a vector, `missing` for a missing number; else empty. */
  readonly values: KeyColumn & { readonly type: 'utf8' };
  /** idf of a word, else 1. */
  readonly weights: Float32Array;
}

/** The part of an encoding that is saved as JSON. */
export function encodingJson({ columns, minCount }: AttributeEncoding) {
  return { minCount, columns: columns.map((column) => ({ ...column })) };
}

/** The encoding with this part. Throws DataError for a kind of columns that this version does not know. */
export function encodingOf(
  json: JsonObject,
  { values, weights }: Pick<AttributeEncoding, 'values' | 'weights'>,
): AttributeEncoding {
  const { columns, minCount } = json as unknown as Pick<AttributeEncoding, 'columns' | 'minCount'>;
  const unknown = columns.find(({ kind }) => !attributeKinds.includes(kind));
  if (unknown === undefined) return { columns, minCount, values, weights };
  throw new DataError(`the attribute ${unknown.name} has the unknown kind ${unknown.kind}`, {
    phase: 'load',
    advice: 'Update FactorFlow',
  });
}

/** The column and value of a feature after the constant. */
export function featureOf({ columns, values }: AttributeEncoding, feature: number) {
  return {
    column: columns.findLast(({ first }) => first <= feature) as EncodedColumn,
    value: keyText(values, feature),
  };
}

/** "genres: several values separated by |, 20 values" */
export function describeColumn(column: EncodedColumn): string {
  const { name, kind, features, missing } = column;
  const parts = [`${name}: ${kindText(column)}`];
  if (kind === 'category' || kind === 'values') parts.push(countOf(features, 'value'));
  if (kind === 'words') parts.push(countOf(features, 'word'));
  if ('rare' in column && column.rare > 0) parts.push(`${formatCount(column.rare)} rare ones left out`);
  if (kind === 'number') parts.push(`mean ${short(column.mean)}, deviation ${short(column.deviation)}`);
  if (kind === 'vector') parts.push(`${formatCount(features)} numbers`);
  if (missing > 0) parts.push(`${formatCount(missing)} missing`);
  return parts.join(', ');
}

function kindText(column: EncodedColumn): string {
  if (column.kind !== 'values') return column.kind;
  return column.separator === undefined
    ? 'lists of values'
    : `several values separated by "${column.separator}"`;
}

function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** Rows of attributes that grow; see AttributeMatrix. */
export class GrowingRows {
  rows = 0;
  /** Values and words without a feature: rare in training, or not in it. */
  unknown = 0;
  #entries = 0;
  #offsets = new Int32Array(1025);
  #indices = new Uint32Array(4096);
  #values = new Float32Array(4096);

  /** Adds a number to the row that is not ended. Indices of a row must ascend. */
  add(index: number, value: number): void {
    if (this.#entries === this.#indices.length) {
      this.#indices = grown(this.#indices, new Uint32Array(2 * this.#entries));
      this.#values = grown(this.#values, new Float32Array(2 * this.#entries));
    }
    this.#indices[this.#entries] = index;
    this.#values[this.#entries++] = value;
  }

  endRow(): void {
    if (++this.rows === this.#offsets.length)
      this.#offsets = grown(this.#offsets, new Int32Array(2 * this.rows));
    this.#offsets[this.rows] = this.#entries;
  }

  matrix(features: number): AttributeMatrix {
    return {
      rows: this.rows,
      features,
      offsets: this.#offsets.subarray(0, this.rows + 1),
      indices: this.#indices.subarray(0, this.#entries),
      values: this.#values.subarray(0, this.#entries),
    };
  }
}

function grown<T extends Int32Array | Uint32Array | Float32Array>(from: T, to: T): T {
  to.set(from as never);
  return to;
}
