import { sharedArray } from './partition.ts';

/**
 * Rows of a row-major float32 matrix that lies in parts of adjacent rows, which need not be joined to be
 * written.
 */
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
  /**
   * Two numbers stand before the values of a row in its part: the row's own is the first or the second of
   * them, in place of `own`. With a tail only.
   */
  readonly lead?: 0 | 1;
  /** The place of each row among those of the parts; default: they lie in order. */
  readonly order?: Uint32Array;
}

export type RowPart = RowParts['parts'][number];

/** A whole matrix as one part. */
export function wholeRows(values: Float32Array, columns: number): RowParts {
  return { rows: columns === 0 ? 0 : values.length / columns, columns, parts: [{ values }] };
}

/**
 * The rows [from, to) as they are read: the matrix's own memory where they lie there so, else a copy, in
 * shared memory if asked so.
 */
export function readRows(rows: RowParts, from: number, to: number, shared = false): Float32Array {
  const { columns, parts, tail, scale = { values: 1, own: 1 }, lead, order } = rows;
  const width = columns - (tail ? 2 : 0);
  const isPlain = tail === undefined && scale.values === 1 && order === undefined;
  const whole = isPlain ? partWith(parts, from * width, to * width) : undefined;
  if (whole !== undefined) return whole;
  const read = shared
    ? sharedArray(Float32Array, (to - from) * columns)
    : new Float32Array((to - from) * columns);
  if (order !== undefined || lead !== undefined) {
    gatherRows(rows, from, to, read);
    return read;
  }
  let first = 0;
  for (const { values, own } of parts) {
    const rows = own?.length ?? values.length / width;
    const [begin, end] = [Math.max(from, first), Math.min(to, first + rows)];
    const factor = scale.values;
    for (
      let row = begin, start = (begin - first) * width, at = (begin - from) * columns;
      row < end;
      row++, start += width, at += columns
    ) {
      if (factor === 1 && width > 48) read.set(values.subarray(start, start + width), at);
      else for (let k = 0; k < width; k++) read[at + k] = values[start + k] * factor;
    }
    if (tail !== undefined && own !== undefined)
      placeTail(
        read,
        own.subarray(begin - first, Math.max(begin, end) - first),
        (begin - from) * columns + width,
        columns,
        tail,
        scale.own,
      );
    first += rows;
  }
  return read;
}

/** The values [from, to) where they lie in one part. */
function partWith(parts: RowParts['parts'], from: number, to: number): Float32Array | undefined {
  let first = 0;
  for (const { values } of parts) {
    if (from >= first && to <= first + values.length) return values.subarray(from - first, to - first);
    first += values.length;
  }
  return undefined;
}

/** Rows that lie at other places, or behind two numbers of their own. */
function gatherRows(
  { columns, parts, tail, scale = { values: 1, own: 1 }, lead, order }: RowParts,
  from: number,
  to: number,
  read: Float32Array,
): void {
  const width = columns - (tail ? 2 : 0);
  const [stride, before] = lead === undefined ? [width, 0] : [columns, 2];
  const starts = [0];
  for (const { values } of parts) starts.push(starts[starts.length - 1] + values.length / stride);
  let part = 0;
  for (let row = from, at = 0; row < to; row++, at += columns) {
    const place = order === undefined ? row : order[row];
    if (place < starts[part] || place >= starts[part + 1])
      part = starts.findIndex((_, next) => place < starts[next + 1]);
    const { values, own } = parts[part];
    const start = (place - starts[part]) * stride;
    for (let k = 0; k < width; k++) read[at + k] = scale.values * values[start + before + k];
    if (tail === undefined) continue;
    const ofRow =
      lead === undefined
        ? Math.fround((own?.[place - starts[part]] ?? 0) * scale.own)
        : scale.own * values[start + lead];
    read[at + width + (tail.oneFirst ? 1 : 0)] = ofRow + tail.add;
    read[at + width + (tail.oneFirst ? 0 : 1)] = 1;
  }
}

function placeTail(
  read: Float32Array,
  own: Float32Array,
  first: number,
  step: number,
  { oneFirst, add }: NonNullable<RowParts['tail']>,
  scale: number,
): void {
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
    const { rows, columns, parts, tail, scale, order } = this.#rows;
    // From now on the parts are not held.
    if (parts.length !== 1 || tail || scale || order)
      this.#rows = { rows, columns, parts: [{ values: readRows(this.#rows, 0, rows, true) }] };
    return this.#rows.parts[0].values;
  }
}
