import { close, closeSync, open, openSync, readFileSync } from 'node:fs';
import { availableParallelism, devNull } from 'node:os';

/**
 * Files that a thread opens as it begins, with those that it reads at a time; and those of the calling
 * thread.
 */
export const FILES_OF_THREAD = 6;
export const FILES_OF_CALLER = 8;

/** Files that Node has open when it has begun. */
const FILES_OF_NODE = 24;

/** Milliseconds in which a thread of the system takes up a request. */
const TAKEN_UP = 1;

/**
 * Has the system make room for the files of so many threads, before they begin. Linux notes the open files of
 * a process in a table, of 64 places where its parent has few open. Threads share it: the one whose file no
 * longer fits waits 10 to 40 ms for a larger table, and so does every other that needs a new place meanwhile.
 * Here a thread of the system waits for it while the calling one goes on. Does nothing where there is room,
 * and on other systems.
 */
export function makeRoomForFiles(threads = availableParallelism()): void {
  const size = tableSize();
  if (size === undefined || size >= FILES_OF_NODE + 2 * FILES_OF_CALLER + FILES_OF_THREAD * threads) return;
  const held: number[] = [];
  try {
    // All places are taken when the thread opens its file.
    do held.push(openSync(devNull, 'r'));
    while (held[held.length - 1] < size - 1);
    open(devNull, 'r', (error, file) => {
      if (error) return;
      close(file, () => undefined);
      makeRoomForFiles(threads);
    });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TAKEN_UP);
  } catch {
    // The system allows no more files, of which requireLimits tells.
  } finally {
    for (const file of held) closeSync(file);
  }
}

/** Places of the process's table of open files; undefined where the system does not tell. */
export function tableSize(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const size = /^FDSize:\s+(\d+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return size === undefined ? undefined : Number(size);
  } catch {
    return undefined; // A container may hide it.
  }
}
