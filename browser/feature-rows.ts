import { fromHalf } from '../engine/numbers/half.ts';
import type { ArrowValues } from './arrow/arrow-values.ts';
import { problem } from './remote-file.ts';

/** The number of rows of a part file, and their ids. */
export interface Part {
  readonly rows: number;
  readonly ids: readonly ArrowValues[];
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
