import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/**
 * Collects this thread's garbage now. The memory of a SharedArrayBuffer returns to the system only when the small object for it
 * has been collected in every thread that saw it. A thread does not collect on its own for so few bytes, so after a load
 * hundreds of megabytes would stay. Costs a few milliseconds with the small heaps of workers.
 */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
