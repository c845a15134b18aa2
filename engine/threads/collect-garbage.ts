/**
 * The only code that collects garbage explicitly. Memory of a SharedArrayBuffer, and of a GPU's buffer,
 * returns to the system only once its small wrapper object is collected in every thread that had it. V8 does
 * not count shared memory, so it sees a few bytes and does not collect: 200 buffers of 32 MiB, one in use at
 * a time, take 6.4 GB of memory, and ordinary buffers 0.3 GB.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect:
  | ((options?: {
      readonly type: 'major';
      readonly execution: 'sync';
      readonly flavor: 'last-resort';
    }) => void)
  | undefined;

function collector(): NonNullable<typeof collect> {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as NonNullable<typeof collect>;
  }
  return collect;
}

/** Collects this thread's garbage now; takes a few milliseconds with the small heaps of workers. */
export function collectGarbage(): void {
  collector()();
}

/**
 * Keeps the space for new objects (V8's semi-space) of this and all later threads at its current size. Growth
 * saves collections, but takes tens of megabytes per thread, which is most of a small memory budget. Affects
 * the whole process and cannot be undone.
 */
export function keepHeapsSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  // Frees memory that start-up used.
  collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
