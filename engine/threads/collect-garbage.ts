import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect:
  | ((options?: {
      readonly type: 'major';
      readonly execution: 'sync';
      readonly flavor: 'last-resort';
    }) => void)
  | undefined;

/**
 * Keeps the space for new objects of this and all later threads at the size that it has: its growth, which
 * saves collections, would take tens of megabytes a thread, most of which a small memory budget has for data.
 * For the process as a whole, for good.
 *
 */
export function keepHeapsSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  // Gives back what start-up took.
  collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * Collects this thread's garbage now. The memory of a SharedArrayBuffer returns to the system only when the
 * small object for it has been collected in every thread that saw it. A thread does not collect on its own
 * for so few bytes, so after a load hundreds of megabytes would stay. Costs a few milliseconds with the small
 * heaps of workers.
 *
 */
export function collectGarbage(): void {
  collector()();
}

function collector(): NonNullable<typeof collect> {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as NonNullable<typeof collect>;
  }
  return collect;
}
