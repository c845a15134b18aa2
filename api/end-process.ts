import { Worker } from 'node:worker_threads';
import { removeTemporaries, unfinishedPaths } from '../connectors/output/temporaries.ts';
import { endFirst } from '../engine/threads/endings.ts';
import { workerFile } from '../engine/threads/worker-file.ts';
import { longestWait } from '../engine/waits.ts';
import type { StallWatch } from './stall-watcher.ts';

/** Time for file operations that system threads have started, such as creating a folder. */
const DRAIN_MILLISECONDS = 20;

/** Time for a GPU to end its work; a hanging GPU exceeds it. */
const GPU_MILLISECONDS = 2000;

/** Waits of at least this length are abandoned. */
const PATIENCE_MILLISECONDS = 200;

/**
 * If the main thread's event loop does not turn for this time after a request to end, the process is ended.
 */
const STALL_MILLISECONDS = 5000;

/**
 * Ends the process from another thread if the main thread is in work that cannot be interrupted and receives
 * no further signals. Returns the function to call at each turn of the main thread's event loop.
 */
export function endIfStalled(): () => void {
  const beats = new Int32Array(new SharedArrayBuffer(8));
  const workerData: StallWatch = { beats, patience: STALL_MILLISECONDS, unfinished: unfinishedPaths() };
  const watcher = workerFile(new URL('./stall-watcher.js', import.meta.url));
  new Worker(watcher, { workerData }).on('error', () => {}).unref();
  return () => void Atomics.add(beats, 0, 1);
}

/** True if a run that was asked to end still waits for another program, which may take forever. */
export function isStuck(): boolean {
  return longestWait() >= PATIENCE_MILLISECONDS;
}

/** Ends the process during its work. Removes unfinished output, and gives a GPU's thread a moment to end. */
export async function endAtOnce(exitCode: number): Promise<never> {
  removeTemporaries();
  const over = await endFirst(GPU_MILLISECONDS);
  removeTemporaries();
  // This thread is blocked, so no new work starts; output of a file operation that ends meanwhile is removed
  // below.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DRAIN_MILLISECONDS);
  removeTemporaries();
  if (!over) process.kill(process.pid, 'SIGKILL');
  process.exit(exitCode);
}
