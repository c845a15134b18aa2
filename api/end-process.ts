import { Worker } from 'node:worker_threads';
import { removeTemporaries, unfinishedPaths } from '../connectors/output/temporaries.ts';
import { endFirst } from '../engine/threads/endings.ts';
import { workerFile } from '../engine/threads/worker-file.ts';
import { longestWait } from '../engine/waits.ts';
import type { StallWatch } from './stall-watcher.ts';

/**
 * Milliseconds to wait for file operations that are already running in system threads, such as creating a
 * folder.
 */
const DRAIN_MILLISECONDS = 20;

/** Milliseconds that a GPU gets to end its work; a hanging GPU takes longer. */
const GPU_MILLISECONDS = 2000;

/** A run that has waited for another program for at least this time counts as stuck. */
const PATIENCE_MILLISECONDS = 200;

/**
 * If the main thread's event loop makes no turn for this time after a request to end, the process is killed.
 */
const STALL_MILLISECONDS = 5000;

/**
 * Ends the process from another thread in case the main thread does work that cannot be interrupted and
 * receives no further signals. Returns a function that the main thread calls at each turn of its event loop.
 */
export function endIfStalled(): () => void {
  const beats = new Int32Array(new SharedArrayBuffer(8));
  const workerData: StallWatch = { beats, patience: STALL_MILLISECONDS, unfinished: unfinishedPaths() };
  const watcher = workerFile(new URL('./stall-watcher.js', import.meta.url));
  new Worker(watcher, { workerData }).on('error', () => {}).unref();
  return () => void Atomics.add(beats, 0, 1);
}

/** True if a run that should end waits for another program (such as a GPU driver), which may take forever. */
export function isStuck(): boolean {
  return longestWait() >= PATIENCE_MILLISECONDS;
}

/**
 * Ends the process immediately, in the middle of its work. Removes unfinished output, and gives a GPU's
 * thread a moment to end.
 */
export async function endAtOnce(exitCode: number): Promise<never> {
  removeTemporaries();
  const over = await endFirst(GPU_MILLISECONDS);
  removeTemporaries();
  // This thread waits here, so it starts no new work. Output of file operations that end meanwhile is removed
  // afterwards.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DRAIN_MILLISECONDS);
  removeTemporaries();
  if (!over) process.kill(process.pid, 'SIGKILL');
  return exitWithoutWaiting(exitCode);
}

/**
 * `process.exit` waits for the running file operations of all threads, and a file on a dead network drive
 * never answers. A program that replaces this one does not wait. Windows and Node before 22.15 cannot replace
 * it.
 */
function exitWithoutWaiting(exitCode: number): never {
  if (process.platform !== 'win32')
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${exitCode})`], {
      ...process.env,
      NODE_OPTIONS: '',
    });
  return process.exit(exitCode);
}
