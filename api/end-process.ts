import { removeTemporaries } from '../connectors/output/temporaries.ts';
import { endFirst } from '../engine/threads/endings.ts';
import { longestWait } from '../engine/waits.ts';

/** Time for file operations that the system's threads have begun, such as making a folder. */
const DRAIN_MILLISECONDS = 20;

/** Time for a GPU to end its work, unless it hangs. */
const GPU_MILLISECONDS = 2000;

/** Least time of a wait that is given up. */
const PATIENCE_MILLISECONDS = 200;

/** True where a run that was asked to end still waits for another program, which may last for ever. */
export function isStuck(): boolean {
  return longestWait() >= PATIENCE_MILLISECONDS;
}

/**
 * Ends the process in the middle of its work. Removes unfinished output, and gives a GPU's thread a moment to
 * end.
 */
export async function endAtOnce(exitCode: number): Promise<never> {
  removeTemporaries();
  const over = await endFirst(GPU_MILLISECONDS);
  removeTemporaries();
  // This thread is blocked, so no new work begins; output of a file operation that ends meanwhile is removed
  // below.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DRAIN_MILLISECONDS);
  removeTemporaries();
  if (!over) process.kill(process.pid, 'SIGKILL');
  process.exit(exitCode);
}
