import { sharedArray } from './partition.ts';

/**
 * A row-major float32 matrix, stored in parts of adjacent rows. It can be written to a file without joining
 * the parts in memory.
 */
export interface RowParts {
  readonly rows: number;
  /** Numbers of a row as it is read, with the tail. */
  readonly columns: number;
  /** `values`: rows x columns, without the tail. `own`: one number per row. */
  readonly parts: readonly {
    readonly values: Float32Array;
    readonly own?: Float32Array;
    /** For a part in a file, whose values are read at each use: see storedParts. */
    readonly rows?: number;
  }[];
  /**
   * If given, two numbers follow the values of each row that is read: the row's `own` number plus `add`, and
   * a 1; in this order, or with the 1 first.
   */
  readonly tail?: { readonly oneFirst: boolean; readonly add: number };
  /** Factors by which values and own numbers are multiplied; default 1. */
  readonly scale?: { readonly values: number; readonly own: number };
  /**
   * For parts in which two numbers are stored before the values of each row: the index of the row's own
   * number among these two. It replaces `own`, and requires a tail.
   */
  readonly lead?: 0 | 1;
  /** The position of each row among the rows of the parts; default: in order. */
  readonly order?: Uint32Array;
}

export type RowPart = RowParts['parts'][number];

/** Consecutive numbers in files, read at each use. */
export interface StoredNumbers {
  readonly length: number;
  /** The numbers [from, to). Throws DataError if a file was changed or removed. */
  read(from: number, to: number): Float32Array;
}

/** The numbers of a matrix whose parts are in files, row by row; `columns`: numbers of a row. */
export function storedNumbers(parts: readonly RowPart[], columns: number): StoredNumbers {
  const rows = parts.reduce((sum, part) => sum + rowsOfPart(part, columns), 0);
  return {
    length: rows * columns,
    read: (from, to) => {
      const [first, end] = [Math.floor(from / columns), Math.ceil(to / columns)];
      return readRows({ rows, columns, parts }, first, end).subarray(
        from - first * columns,
        to - first * columns,
      );
    },
  };
}

export function wholeRows(values: Float32Array, columns: number): RowParts {
  return { rows: columns === 0 ? 0 : values.length / columns, columns, parts: [{ values }] };
}

const UNSCALED = { values: 1, own: 1 };

function widthOf({ columns, tail }: RowParts): number {
  return tail === undefined ? columns : columns - 2;
}

/**
 * The rows [from, to) as they are read: a view if the matrix stores them in that form, else a copy,
 * optionally in shared memory.
 */
export function readRows(rows: RowParts, from: number, to: number, shared = false): Float32Array {
  const { columns, parts, tail, scale = UNSCALED, lead, order } = rows;
  if (tail === undefined && scale.values === 1 && order === undefined) {
    const whole = partWith(parts, from, to, columns);
    if (whole !== undefined) return whole;
  }
  const size = (to - from) * columns;
  const read = shared ? sharedArray(Float32Array, size) : new Float32Array(size);
  if (order !== undefined || lead !== undefined) gatherRows(rows, from, to, read);
  else joinRows(rows, from, to, read);
  return read;
}

/** Copies rows in the order of the parts. */
function joinRows(matrix: RowParts, from: number, to: number, read: Float32Array): void {
  const { columns, parts, tail, scale = UNSCALED } = matrix;
  const width = widthOf(matrix);
  let first = 0;
  for (const part of parts) {
    const rows = rowsOfPart(part, width);
    const [begin, end] = [Math.max(from, first) - first, Math.min(to, first + rows) - first];
    if (begin < end) {
      const { values, own } = part;
      const target = read.subarray((first + begin - from) * columns);
      copyRows(values.subarray(begin * width, end * width), width, scale.values, target, columns);
      if (tail && own) placeTail(target.subarray(width), own.subarray(begin, end), columns, tail, scale.own);
    }
    first += rows;
  }
}

function copyRows(
  values: Float32Array,
  width: number,
  factor: number,
  target: Float32Array,
  columns: number,
): void {
  for (let start = 0, at = 0; start < values.length; start += width, at += columns) {
    if (factor === 1 && width > 48) target.set(values.subarray(start, start + width), at);
    else for (let k = 0; k < width; k++) target[at + k] = values[start + k] * factor;
  }
}

/** The rows [from, to) if they are in one part. */
function partWith(
  parts: RowParts['parts'],
  from: number,
  to: number,
  columns: number,
): Float32Array | undefined {
  let first = 0;
  for (const part of parts) {
    const rows = rowsOfPart(part, columns);
    if (from >= first && to <= first + rows)
      return part.values.subarray((from - first) * columns, (to - first) * columns);
    first += rows;
  }
  return undefined;
}

function rowsOfPart(part: RowPart, width: number): number {
  return part.rows ?? part.own?.length ?? (width === 0 ? 0 : part.values.length / width);
}

export function areStored({ parts }: Pick<RowParts, 'parts'>): boolean {
  return parts.some(({ rows }) => rows !== undefined);
}

/**
 * The parts of a matrix in files. Values are read at each use; those of the part that was read last are kept,
 * so that rows can be read in order with one part in memory. `own`: see RowParts, by part.
 */
export function storedParts(
  parts: readonly { readonly rows: number; read(): Float32Array }[],
  own?: readonly Float32Array[],
): RowPart[] {
  let last: { readonly part: number; readonly values: Float32Array } | undefined;
  const valuesOf = (part: number) => {
    if (last?.part !== part) {
      last = undefined;
      last = { part, values: parts[part].read() };
    }
    return last.values;
  };
  return parts.map(({ rows }, part) => ({
    rows,
    ...(own && { own: own[part] }),
    get values() {
      return valuesOf(part);
    },
  }));
}

/** The same part with other own numbers. The given part still reads its values, and keeps them in memory. */
export function withOwn(part: RowPart, own: Float32Array): RowPart {
  return {
    own,
    ...(part.rows !== undefined && { rows: part.rows }),
    get values() {
      return part.values;
    },
  };
}

/** Copies rows in another order, or stored after two numbers. */
function gatherRows(matrix: RowParts, from: number, to: number, read: Float32Array): void {
  const { columns, parts, tail, scale = UNSCALED, lead, order } = matrix;
  const width = widthOf(matrix);
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
    placeOne(read, at + width, ofRow, tail);
  }
}

function placeTail(
  read: Float32Array,
  own: Float32Array,
  step: number,
  tail: NonNullable<RowParts['tail']>,
  scale: number,
): void {
  // The sum is computed in float32.
  for (let row = 0; row < own.length; row++) placeOne(read, row * step, Math.fround(own[row] * scale), tail);
}

function placeOne(
  read: Float32Array,
  at: number,
  own: number,
  { oneFirst, add }: NonNullable<RowParts['tail']>,
): void {
  read[oneFirst ? at + 1 : at] = own + add;
  read[oneFirst ? at : at + 1] = 1;
}

/** A matrix stored in parts until it is first read as a whole. */
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
    // The parts are no longer referenced.
    if (parts.length !== 1 || tail || scale || order)
      this.#rows = { rows, columns, parts: [{ values: readRows(this.#rows, 0, rows, true) }] };
    return this.#rows.parts[0].values;
  }
}
