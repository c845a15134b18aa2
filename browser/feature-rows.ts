import { fromHalf } from '../engine/numbers/half.ts';
import type { ArrowValues } from './arrow/arrow-values.ts';
import type { CachedFile } from './cached-file.ts';
import { type RangedFile, problem, type RemoteFile } from './remote-file.ts';

/** A part file of one side of a model, whose columns are read as they are needed. */
export interface PartFile {
  readonly file: RemoteFile;
  readonly rows: number;
  ids(): Promise<readonly ArrowValues[]>;
  /** Reads the numbers of all rows. `through`: this file, with the signal that cancels. */
  readAll(target: Float32Array, through: RangedFile): Promise<void>;
  /**
   * Reads the numbers of rows, ascending, one row after the other. `file`: this file with a cache. Throws
   * DataError unless they are float32 numbers.
   */
  readRows(rows: readonly number[], file: CachedFile, signal: AbortSignal): Promise<Float32Array>;
}

/** The error for a column of which a page cannot read single rows. */
export function noSingleRows(url: string): Error {
  return problem(
    url,
    'the list index needs features of 32 bits, and these have fewer',
    'Open the model without index, or copy the files of the full model',
  );
}

/** Rows whose numbers are stored one after the other: the first one, and its place in the file. */
export interface RowPlaces {
  readonly first: number;
  readonly at: number;
}

/** Reads single rows by the places of all. Throws DataError for numbers that are not finite. */
export async function rowsAt(
  places: readonly RowPlaces[],
  rows: readonly number[],
  width: number,
  file: CachedFile,
  signal: AbortSignal,
): Promise<Float32Array> {
  const ranges = rows.map((row) => {
    const own = places.findLast(({ first }) => first <= row) as RowPlaces;
    const from = own.at + 4 * width * (row - own.first);
    return { from, to: from + 4 * width };
  });
  const values = new Float32Array(rows.length * width);
  const bytes = new Uint8Array(values.buffer);
  (await file.gather(ranges, signal)).forEach((piece, row) => bytes.set(piece, 4 * row * width));
  if (!values.every(Number.isFinite)) throw problem(file.url, 'a feature is NaN or infinite');
  return values;
}

/**
 * The features of a row as numbers. Files for pages (examples/browser/small-items.ts) store each
 * feature as one byte, in units of the row's scale, or as the two bytes of a float16 number.
 */
export function plainFeatures(row: unknown, width: number, scale: unknown, url: string): ArrayLike<number> {
  if (!(row instanceof Uint8Array)) return row as ArrayLike<number>;
  if (typeof scale !== 'number')
    throw problem(url, 'features are bytes, and a row has no number in a column scale');
  if (row.length === 2 * width)
    return Float32Array.from({ length: width }, (_, k) => fromHalf(row[2 * k] | (row[2 * k + 1] << 8)));
  return Float32Array.from(row, (byte) => ((byte << 24) >> 24) * scale);
}

/** Copies the features of a row. Throws DataError unless they are `width` finite numbers. */
export function copyRow(
  row: ArrayLike<number> | undefined,
  target: Float32Array,
  at: number,
  width: number,
  url: string,
): void {
  if (row?.length !== width)
    throw problem(url, `a feature vector has ${row?.length ?? 0} values, and the model's rank is ${width}`);
  for (let k = 0; k < width; k++) {
    if (!Number.isFinite(row[k])) throw problem(url, 'a feature is missing, NaN or infinite');
    target[at + k] = row[k];
  }
}
