import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { plainBatches } from '../files/plain-columns.ts';
import type { ByteOutput } from './byte-output.ts';
import type { WritingContext } from './checked-sink.ts';
import type { Encoding } from '../formats.ts';
import { RowEncoder } from './row-encoder.ts';

/** Some rows: a batch, or their encoded bytes. */
interface Rows {
  readonly numRows: number;
}

/** An output of batches. */
export interface BatchOutput<Batch extends Rows = RecordBatch> {
  /** True when nothing reads the output any more. */
  readonly unread?: boolean;
  /** Number of output rows in a batch, if it differs from the batch's own rows (encoded row groups). */
  rowsOf?(batch: Batch): number;
  write(batch: Batch): Promise<void>;
  end(): Promise<void>;
}

/** Writes a stream to an output, ends it, and reports the progress. Returns the number of rows. */
export async function writeBatches<Batch extends Rows>(
  input: AsyncIterable<Batch>,
  output: BatchOutput<Batch>,
  { signal, events }: WritingContext,
): Promise<number> {
  const phase = startPhase(events, 'write', 'rows');
  let rows = 0;
  throwIfAborted(signal, 'write');
  for await (const batch of input) {
    throwIfAborted(signal, 'write');
    await output.write(batch);
    rows += output.rowsOf?.(batch) ?? batch.numRows;
    if (output.unread) break;
    phase.progress(rows);
  }
  throwIfAborted(signal, 'write');
  await output.end();
  phase.end(rows);
  return rows;
}

/** Writes the bytes before all rows, of batches, and after them. `close` is called in any case. */
interface BytesOfBatches<Batch extends Rows> extends BatchOutput<Batch> {
  begin(): Promise<void>;
  close?(): Promise<void>;
}

/** Writes a stream and commits the output; after a failure nothing is left. Returns the number of rows. */
export async function writeBytes<Batch extends Rows>(
  input: AsyncIterable<Batch>,
  output: ByteOutput,
  bytes: BytesOfBatches<Batch>,
  ctx: WritingContext,
): Promise<number> {
  try {
    let rows: number;
    try {
      await bytes.begin();
      const batches = {
        get unread() {
          return output.unread;
        },
        write: (batch: Batch) => bytes.write(batch),
        end: () => bytes.end(),
      };
      rows = await writeBatches(input, batches, ctx);
    } finally {
      await bytes.close?.();
    }
    await output.commit();
    return rows;
  } catch (error) {
    throw await output.fail(error);
  }
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
  const encoded = mapOrdered(numbered(input), encoder.atOnce, async ({ batch, firstRow }) => {
    const rows = new RowStream(batch.schema, false);
    rows.add(batch);
    return { numRows: batch.numRows, bytes: await encoder.encode(rows, encoding, firstRow) };
  });
  const lines: BytesOfBatches<{ readonly numRows: number; readonly bytes: Uint8Array }> = {
    begin: () => output.write(header),
    write: ({ bytes }) => output.write(bytes),
    end: async () => {},
    close: () => encoder.close(),
  };
  return writeBytes(encoded, output, lines, ctx);
}

/** The batches with plain columns, and the number of the first row of each. */
async function* numbered(
  input: BatchStream,
): AsyncGenerator<{ readonly batch: RecordBatch; readonly firstRow: number }> {
  let firstRow = 0;
  for await (const all of input) {
    for (const batch of plainBatches(all)) {
      yield { batch, firstRow };
      firstRow += batch.numRows;
    }
  }
}
