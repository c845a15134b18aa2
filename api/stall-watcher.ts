/**
 * The thread that watches the main thread after a request to end the process. If the main thread's event loop
 * makes no turn for `patience` milliseconds, it removes unfinished output and ends the process.
 */
import { rmSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

export interface StallWatch {
  /**
   * Element 0 grows at each turn of the main thread's event loop. Element 1 never changes: the watcher waits
   * on it as a timer.
   */
  readonly beats: Int32Array;
  /** In milliseconds. */
  readonly patience: number;
  /** Files and folders to remove. */
  readonly unfinished: readonly string[];
}

const { beats, patience, unfinished } = workerData as StallWatch;
for (let last = -1; last !== Atomics.load(beats, 0);) {
  last = Atomics.load(beats, 0);
  Atomics.wait(beats, 1, 0, patience);
}
for (const path of unfinished) {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Errors while removing output are ignored, since the process must end.
  }
}
process.kill(process.pid, 'SIGKILL');
