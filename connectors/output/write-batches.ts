import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { plainBatches } from '../files/plain-columns.ts';
import type { ByteOutput } from './byte-output.ts';
import type { WritingContext } from './checked-sink.ts';
import type { Encoding } from './encode-rows.ts';
import { EncodedPieces, RowEncoder } from './row-encoder.ts';

const PROGRESS_MILLISECONDS = 100;

/** An output of batches. */
export interface BatchOutput {
  /** True when nothing reads the output any more. */
  readonly unread?: boolean;
  /** Number of output rows in a batch, if it differs from the batch's own rows (encoded row groups). */
  rowsOf?(batch: RecordBatch): number;
  write(batch: RecordBatch): Promise<void>;
  end(): Promise<void>;
}

/** Writes a stream to an output, ends it, and reports the progress. Returns the number of rows. */
export async function writeBatches(
  input: BatchStream,
  output: BatchOutput,
  { signal, events }: WritingContext,
): Promise<number> {
  const started = performance.now();
  let told = started;
  let rows = 0;
  events({ type: 'phase-start', phase: 'write', unit: 'rows' });
  throwIfAborted(signal, 'write');
  for await (const batch of input) {
    throwIfAborted(signal, 'write');
    await output.write(batch);
    rows += output.rowsOf?.(batch) ?? batch.numRows;
    if (output.unread) break;
    if (performance.now() - told < PROGRESS_MILLISECONDS) continue;
    told = performance.now();
    events({ type: 'phase-progress', phase: 'write', done: rows, unit: 'rows' });
  }
  throwIfAborted(signal, 'write');
  await output.end();
  events({
    type: 'phase-end',
    phase: 'write',
    seconds: (performance.now() - started) / 1000,
    done: rows,
    unit: 'rows',
  });
  return rows;
}

/**
 * Encodes batches as bytes, in this thread. `begin` returns the bytes before all rows, `end` the bytes after
 * them.
 */
export interface BatchEncoder {
  begin(): Uint8Array;
  batch(batch: RecordBatch): Uint8Array;
  end(): Uint8Array;
}

/**
 * Writes a stream as an encoder's bytes and commits the output; after a failure nothing is left. Returns the
 * number of rows.
 */
export async function writeEncoded(
  input: BatchStream,
  output: ByteOutput,
  encoder: BatchEncoder,
  ctx: WritingContext,
): Promise<number> {
  return committed(output, async () => {
    await output.write(encoder.begin());
    return writeBatches(
      input,
      batchesTo(
        output,
        (batch) => output.write(encoder.batch(batch)),
        () => output.write(encoder.end()),
      ),
      ctx,
    );
  });
}

/** Writes a stream as lines, which threads encode in parallel. `header`: the bytes before all rows. */
export async function writeLines(
  input: BatchStream,
  output: ByteOutput,
  header: Uint8Array,
  encoding: Encoding,
  ctx: WritingContext,
): Promise<number> {
  const encoder = new RowEncoder(ctx);
  const pieces = new EncodedPieces(encoder, (bytes) => output.write(bytes));
  const write = async (batch: RecordBatch) => {
    for (const plain of plainBatches(batch)) await pieces.add([plain], encoding);
  };
  return committed(output, async () => {
    try {
      await output.write(header);
      return await writeBatches(
        input,
        batchesTo(output, write, () => pieces.end()),
        ctx,
      );
    } finally {
      await pieces.abort();
      await encoder.close();
    }
  });
}

function batchesTo(output: ByteOutput, write: BatchOutput['write'], end: BatchOutput['end']): BatchOutput {
  return {
    get unread() {
      return output.unread;
    },
    write,
    end,
  };
}

async function committed(output: ByteOutput, write: () => Promise<number>): Promise<number> {
  try {
    const rows = await write();
    await output.commit();
    return rows;
  } catch (error) {
    throw await output.fail(error);
  }
}
