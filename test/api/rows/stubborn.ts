/** Functions for threads, which end or hang as `args` says. */
import type { RecordBatch } from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

/**
 * Never returns, and so keeps its thread. Creates a file in the folder, with the thread's number in its
 * name.
 */
export function hangs(_: RecordBatch, { marks }: { readonly marks: string }): RecordBatch {
  writeFileSync(join(marks, `thread-${threadId}`), '');
  for (;;) if (threadId < 0) throw new Error('no thread has such a number');
}

/** Ends its thread in the middle of its work. */
export function ends(): RecordBatch {
  process.exit(3);
}

/** Takes a while for each batch. */
export async function slow(batch: RecordBatch): Promise<RecordBatch> {
  await new Promise((resolve) => setTimeout(resolve, 30));
  return batch;
}
