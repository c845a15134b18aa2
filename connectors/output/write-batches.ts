import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import type { ByteOutput } from './byte-output.ts';

const PROGRESS_MILLISECONDS = 100;

/** An output of batches. */
export interface BatchOutput {
  /** True when nothing reads the output any more. */
  readonly unread?: boolean;
  write(batch: RecordBatch): Promise<void>;
  end(): Promise<void>;
}

/** Writes a stream to an output, ends it, and reports the progress. Gives the number of rows. */
export async function writeBatches(input: BatchStream, output: BatchOutput, { signal, events }: Pick<ExecutionContext, 'signal' | 'events'>): Promise<number> {
  const started = performance.now();
  let told = started;
  let rows = 0;
  events({ type: 'phase-start', phase: 'write', unit: 'rows' });
  throwIfAborted(signal, 'write');
  for await (const batch of input) {
    throwIfAborted(signal, 'write');
    await output.write(batch);
    rows += batch.numRows;
    if (output.unread) break;
    if (performance.now() - told < PROGRESS_MILLISECONDS) continue;
    told = performance.now();
    events({ type: 'phase-progress', phase: 'write', done: rows, unit: 'rows' });
  }
  throwIfAborted(signal, 'write');
  await output.end();
  events({ type: 'phase-end', phase: 'write', seconds: (performance.now() - started) / 1000, done: rows, unit: 'rows' });
  return rows;
}

/** Encodes batches as bytes; `begin` gives those before all rows, `end` those after them. */
export interface BatchEncoder {
  begin(): Uint8Array;
  batch(batch: RecordBatch): Uint8Array;
  end(): Uint8Array;
}

/** Writes a stream as an encoder's bytes and commits the output; after a failure nothing is left. Gives the number of rows. */
export async function writeEncoded(input: BatchStream, output: ByteOutput, encoder: BatchEncoder, ctx: Pick<ExecutionContext, 'signal' | 'events'>): Promise<number> {
  try {
    throwIfAborted(ctx.signal, 'write');
    await output.write(encoder.begin());
    const encoded: BatchOutput = {
      get unread() {
        return output.unread;
      },
      write: (batch) => output.write(encoder.batch(batch)),
      end: async () => {
        await output.write(encoder.end());
        await output.commit();
      },
    };
    return await writeBatches(input, encoded, ctx);
  } catch (error) {
    await output.discard();
    throw error;
  }
}
