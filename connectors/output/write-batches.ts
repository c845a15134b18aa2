import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import type { BatchStream } from '../../engine/stream.ts';
import type { ByteOutput } from './byte-output.ts';

const progressMilliseconds = 100;

/** What turns batches into bytes; `begin` comes before all rows, `end` after them. */
export interface BatchEncoder {
  begin(): Uint8Array;
  batch(batch: RecordBatch): Uint8Array;
  end(): Uint8Array;
}

/** Writes a stream to an output, telling of the progress, and commits it; after any failure nothing is left. Gives the rows. */
export async function writeBatches(input: BatchStream, output: ByteOutput, encoder: BatchEncoder, { signal, events }: Pick<ExecutionContext, 'signal' | 'events'>): Promise<number> {
  const started = performance.now();
  let told = started;
  let rows = 0;
  try {
    events({ type: 'phase-start', phase: 'write', unit: 'rows' });
    throwIfAborted(signal, 'write');
    await output.write(encoder.begin());
    for await (const batch of input) {
      throwIfAborted(signal, 'write');
      await output.write(encoder.batch(batch));
      rows += batch.numRows;
      if (output.unread) break;
      if (performance.now() - told < progressMilliseconds) continue;
      told = performance.now();
      events({ type: 'phase-progress', phase: 'write', done: rows, unit: 'rows' });
    }
    throwIfAborted(signal, 'write');
    await output.write(encoder.end());
    await output.commit();
    events({ type: 'phase-end', phase: 'write', seconds: (performance.now() - started) / 1000, done: rows, unit: 'rows' });
    return rows;
  } catch (error) {
    await output.discard();
    throw error;
  }
}
