/**
 * Entry of the thread that watches the main thread after a request to end. It ends the process if the main
 * thread's event loop has not turned for `patience` milliseconds, and removes unfinished output before.
 */
import { rmSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

export interface StallWatch {
  /** The first number grows at each turn of the main thread's event loop; nothing notifies the second. */
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
    // The process ends all the same.
  }
}
process.kill(process.pid, 'SIGKILL');
