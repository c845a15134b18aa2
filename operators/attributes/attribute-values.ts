import { type Data, DataType, type RecordBatch } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { placeOf } from '../../engine/stream/stream.ts';
import { plainValues } from '../../engine/values/plain-values.ts';
import { elementsAt, isList } from '../../engine/values/value-texts.ts';
import { type AttributeKind, type EncodedColumn } from './encoding.ts';
import { partsOf, type Tokens, tokensOf, wordsOf } from './tokens.ts';

/** Rows with attributes: of an Arrow batch, or plain objects. */
export interface AttributeBatch {
  readonly rows: number;
  /** The values of a column; a missing one is null or undefined. A missing column has no values. */
  column(name: string): (row: number) => unknown;
  /** Throws DataError with the place of a row. */
  refuse(row: number, column: string, problem: string): never;
}

export function attributeBatch(batch: RecordBatch): AttributeBatch {
  return {
    rows: batch.numRows,
    column: (name) => {
      const at = batch.schema.fields.findIndex((field) => field.name === name);
      return at < 0 ? () => null : valuesAt(batch.data.children[at]);
    },
    refuse: (row, column, problem) => {
      const { fault: _fault, ...place } = placeOf(batch, row) ?? { row };
      throw new DataError(problem, { phase: 'read attributes', ...place, column });
    },
  };
}

/** Plain objects, such as the items that a request adds. */
export function plainBatch(rows: readonly Readonly<Record<string, unknown>>[]): AttributeBatch {
  return {
    rows: rows.length,
    column: (name) => (row) => rows[row][name],
    refuse: (row, column, problem) => {
      throw new DataError(problem, { phase: 'read attributes', row, column });
    },
  };
}

/** Like `plainValues`, but lists of float numbers without nulls are views, not arrays. */
function valuesAt(data: Data): (row: number) => unknown {
  const [child] = data.children;
  if (!isList(data.type) || !DataType.isFloat(child.type) || child.nullCount > 0) return plainValues(data);
  const values = child.values as Float32Array | Float64Array | Uint16Array;
  if (values instanceof Uint16Array) return plainValues(data);
  return (row) =>
    data.nullCount > 0 && !data.getValid(row) ? null : values.subarray(...elementsAt(data, row));
}

const isNumbers = (value: unknown): value is ArrayLike<number | bigint> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** The tokens of a column of category, values or words. */
export function columnTokens(
  {
    name,
    kind,
    separator,
  }: Pick<EncodedColumn, 'name'> & {
    readonly kind: AttributeKind;
    readonly separator?: string | undefined;
  },
  batch: AttributeBatch,
): Tokens {
  const valueAt = batch.column(name);
  let row = 0;
  const text = (value: unknown): string => {
    if (value === null || value === undefined) return '';
    if (typeof value === 'object')
      return batch.refuse(row, name, `${shown(value)} is not a value of an attribute (${kind})`);
    return typeof value === 'number' && Number.isNaN(value) ? '' : String(value).trim();
  };
  const single = (value: unknown) => [text(value)].filter((token) => token !== '');
  const split = (value: unknown): readonly string[] => {
    if (kind !== 'category' && isNumbers(value)) {
      const parts = Array.from(value as ArrayLike<unknown>, text).filter((token) => token !== '');
      return kind === 'words' ? parts.map((part) => part.toLowerCase()) : parts;
    }
    if (kind === 'words') return wordsOf(text(value));
    return kind === 'category' || separator === undefined ? single(value) : partsOf(text(value), separator);
  };
  return tokensOf(
    batch.rows,
    (at) => {
      row = at;
      return valueAt(at);
    },
    split,
  );
}

/** The numbers of a column; NaN for a missing one. Text is read as a number if it is one. */
export function columnNumbers(name: string, batch: AttributeBatch): (row: number) => number {
  const valueAt = batch.column(name);
  return (row) => {
    const value = valueAt(row);
    if (typeof value === 'number') return Number.isFinite(value) ? value : Number.NaN;
    if (value === null || value === undefined) return Number.NaN;
    if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
    const text = typeof value === 'string' ? value.trim() : undefined;
    if (text === '') return Number.NaN;
    const number = Number(text ?? Number.NaN);
    return Number.isFinite(number) ? number : batch.refuse(row, name, `${shown(value)} is not a number`);
  };
}

/**
 * The vectors of a column; undefined for a missing one, which includes vectors with NaN. The length of the
 * first one is the length of all, unless it is given.
 */
export function columnVectors(
  name: string,
  batch: AttributeBatch,
  length?: number,
): (row: number) => ArrayLike<number> | undefined {
  const valueAt = batch.column(name);
  return (row) => {
    const value = valueAt(row);
    if (value === null || value === undefined) return undefined;
    if (!isNumbers(value)) return batch.refuse(row, name, `${shown(value)} is not a list of numbers`);
    length ??= value.length;
    if (value.length !== length)
      return batch.refuse(row, name, `a vector has ${value.length} numbers, and others have ${length}`);
    const numbers = value instanceof Float32Array ? value : Float64Array.from(value as number[], numberOf);
    for (let k = 0; k < length; k++) if (!Number.isFinite(numbers[k])) return undefined;
    return numbers;
  };
}

function numberOf(value: unknown): number {
  return value === null ? Number.NaN : Number(value);
}
