import type { RecordBatch, Schema } from 'apache-arrow';

/**
 * A pulled stream of Arrow record batches.
 *
 * Contract: the consumer pulls; a producer holds at most a bounded number of batches that were not pulled yet.
 * Leaving the loop early (`break`, `return`, a throw) calls the iterator's `return`, and the producer frees its memory and files.
 * Batches are immutable once given out; a consumer may keep them. Every batch has the stream's schema.
 */
export interface BatchStream extends AsyncIterable<RecordBatch> {
  readonly schema: Schema;
}

/** Couples a schema with an iterable of batches that have it. */
export function batchStream(schema: Schema, batches: AsyncIterable<RecordBatch>): BatchStream {
  return { schema, [Symbol.asyncIterator]: () => batches[Symbol.asyncIterator]() };
}

/** The origin of the rows of a batch, so that an error can name the place. */
export interface BatchOrigin {
  readonly file?: string;
  readonly rowGroup?: number;
  /** Row of the file (or of the stream, without a file) that is the batch's row 0. */
  readonly firstRow: number;
}

const origins = new WeakMap<RecordBatch, BatchOrigin>();

/** Notes a batch's origin beside it (batches themselves stay as Arrow made them). */
export function setOrigin(batch: RecordBatch, origin: BatchOrigin): RecordBatch {
  origins.set(batch, origin);
  return batch;
}

export function originOf(batch: RecordBatch): BatchOrigin | undefined {
  return origins.get(batch);
}
