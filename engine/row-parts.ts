import { sharedArray } from './partition.ts';

/** Rows of a row-major float32 matrix that lies in parts of adjacent rows, which need not be joined to be written. */
export interface RowParts {
  readonly rows: number;
  /** Numbers of a row as it is read: its values, and those of the tail. */
  readonly columns: number;
  /** `values`: rows x columns, without the tail's two. `own`: a number of each row. */
  readonly parts: readonly { readonly values: Float32Array; readonly own?: Float32Array }[];
  /** Two numbers behind a row's values: its own plus `add`, and a 1, in this order or with the 1 first. */
  readonly tail?: { readonly oneFirst: boolean; readonly add: number };
  /** Factors of values and own numbers; default 1. */
  readonly scale?: { readonly values: number; readonly own: number };
}

export type RowPart = RowParts['parts'][number];

/** A whole matrix as one part. */
export function wholeRows(values: Float32Array, columns: number): RowParts {
  return { rows: columns === 0 ? 0 : values.length / columns, columns, parts: [{ values }] };
}

/** The rows [from, to) as they are read: the matrix's own memory where they lie there so, else a copy, in shared memory if asked so. */
export function readRows({ columns, parts, tail, scale = { values: 1, own: 1 } }: RowParts, from: number, to: number, shared = false): Float32Array {
  const width = columns - (tail ? 2 : 0);
  if (tail === undefined && scale.values === 1 && parts.length === 1) return parts[0].values.subarray(from * width, to * width);
  const read = shared ? sharedArray(Float32Array, (to - from) * columns) : new Float32Array((to - from) * columns);
  let first = 0;
  for (const { values, own } of parts) {
    const rows = own?.length ?? values.length / width;
    const [begin, end] = [Math.max(from, first), Math.min(to, first + rows)];
    const factor = scale.values;
    for (let row = begin, start = (begin - first) * width, at = (begin - from) * columns; row < end; row++, start += width, at += columns) {
      if (factor === 1 && width > 48) read.set(values.subarray(start, start + width), at);
      else for (let k = 0; k < width; k++) read[at + k] = values[start + k] * factor;
    }
    if (tail !== undefined && own !== undefined) placeTail(read, own.subarray(begin - first, Math.max(begin, end) - first), (begin - from) * columns + width, columns, tail, scale.own);
    first += rows;
  }
  return read;
}

function placeTail(read: Float32Array, own: Float32Array, first: number, step: number, { oneFirst, add }: NonNullable<RowParts['tail']>, scale: number): void {
  for (let row = 0, at = first; row < own.length; row++, at += step) {
    // The sum is one of float32 numbers.
    read[oneFirst ? at + 1 : at] = Math.fround(own[row] * scale) + add;
    read[oneFirst ? at : at + 1] = 1;
  }
}

/** A matrix that lies in its parts until it is first read as a whole. */
export class JoinedRows {
  #rows: RowParts;

  constructor(rows: RowParts) {
    this.#rows = rows;
  }

  get rows(): RowParts {
    return this.#rows;
  }

  get whole(): Float32Array {
    const { rows, columns, parts, tail, scale } = this.#rows;
    // From now on the parts are not held.
    if (parts.length !== 1 || tail || scale) this.#rows = { rows, columns, parts: [{ values: readRows(this.#rows, 0, rows, true) }] };
    return this.#rows.parts[0].values;
  }
}
