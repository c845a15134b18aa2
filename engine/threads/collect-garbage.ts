import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/**
 * Collects this thread's garbage now. A SharedArrayBuffer is given back to the system only when the few bytes that stand
 * for it have been collected in every thread that saw it, and no thread hurries for a few bytes: after a load, hundreds
 * of megabytes would stay. Costs a few milliseconds with the small heaps of workers.
 */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
