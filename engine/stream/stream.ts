import type { Data, RecordBatch, Schema } from 'apache-arrow';

/**
 * A pulled stream of Arrow record batches.
 *
 * Contract: the consumer pulls; a producer holds a bounded number of batches that were not pulled yet.
 * Leaving the loop early (`break`, `return`, a throw) calls the iterator's `return`, and the producer frees
 * its memory and files. Batches are immutable once given out; a consumer may keep them. Every batch has the
 * stream's schema.
 */
export interface BatchStream extends AsyncIterable<RecordBatch> {
  readonly schema: Schema;
  /**
   * Equal for streams of the same rows, so that results computed from them can be cached; absent if unknown.
   */
  readonly identity?: string;
  /** The number of rows; absent if it is not known before they are read. */
  readonly numRows?: number;
  /** Called by a consumer that can do without some rows; the producer may then leave them out. */
  readonly narrow?: (needed: NeededRows) => void;
}

/** The rows that a consumer still needs, by the values of one column. They become fewer while it reads. */
export interface NeededRows {
  readonly column: string;
  /** False if no row with these values is needed. */
  mayHave(values: Data): boolean;
}

/** Schema metadata of a source: the columns that it leaves out, after the reason. */
export const LEFT_OUT = 'left out';

/** The names of the columns, and those that the source leaves out, for errors. */
export function columnsText({ fields, metadata }: Schema): string {
  const leftOut = metadata.get(LEFT_OUT);
  const names = fields.map(({ name }) => name).join(', ') || 'none';
  return `${names}${leftOut ? `, and left out, ${leftOut}` : ''}`;
}

/** Combines a schema with an iterable of batches that have it. */
export function batchStream(schema: Schema, batches: AsyncIterable<RecordBatch>): BatchStream {
  return { schema, [Symbol.asyncIterator]: () => batches[Symbol.asyncIterator]() };
}

/** The origin of the rows of a batch, so that an error can report the place. */
export interface BatchOrigin {
  readonly file?: string;
  readonly rowGroup?: number;
  /** The row of the file (or of the stream, without a file) that is the batch's row 0. */
  readonly firstRow: number;
  /** For files of lines: the line of the file, from 1, of each row of the origin. */
  readonly lineOf?: (row: number) => number;
  /** For each row of the origin with a value that could not be read and has become null: the reason. */
  readonly faults?: ReadonlyMap<number, string>;
  /** The rows of the origin that the batch has, if some were left out. */
  readonly kept?: ArrayLike<number>;
}

const origins = new WeakMap<RecordBatch, BatchOrigin>();

/** Stores a batch's origin outside the batch, which stays unchanged. */
export function setOrigin(batch: RecordBatch, origin: BatchOrigin): RecordBatch {
  origins.set(batch, origin);
  return batch;
}

/** Records that `batch` has the rows of another batch at these positions. */
export function setTakenOrigin(
  batch: RecordBatch,
  from: RecordBatch,
  positions: ArrayLike<number>,
): RecordBatch {
  const origin = originOf(from);
  if (origin === undefined) return batch;
  return setOrigin(batch, { ...origin, kept: origin.kept ? taken(origin.kept, positions) : positions });
}

function taken(kept: ArrayLike<number>, positions: ArrayLike<number>): Uint32Array {
  const rows = positions.length;
  const own = new Uint32Array(rows);
  for (let i = 0; i < rows; i++) own[i] = kept[positions[i]];
  return own;
}

/** The place of one row of a batch, as far as known. */
export interface RowPlace {
  readonly file?: string;
  readonly rowGroup?: number;
  /** From 0. */
  readonly row?: number;
  /** From 1. */
  readonly line?: number;
  /** The reason why values of the row are null. */
  readonly fault?: string;
}

export function placeOf(batch: RecordBatch, row: number): RowPlace | undefined {
  const origin = originOf(batch);
  if (origin === undefined) return undefined;
  const { file, rowGroup, firstRow, lineOf, faults, kept } = origin;
  const own = kept?.[row] ?? row;
  return { file, rowGroup, row: firstRow + own, line: lineOf?.(own), fault: faults?.get(own) };
}

export function originOf(batch: RecordBatch): BatchOrigin | undefined {
  return origins.get(batch);
}
