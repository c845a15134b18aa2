import { close, closeSync, open, openSync, readFileSync } from 'node:fs';
import { availableParallelism, devNull } from 'node:os';

/**
 * Number of files that a thread has open at most while it starts or reads; the calling thread may have the
 * second number.
 */
export const FILES_OF_THREAD = 6;
export const FILES_OF_CALLER = 8;

/** Files that Node has open after its start. */
const FILES_OF_NODE = 24;

/** Milliseconds to wait until a system thread has taken up a request to open a file. */
const TAKEN_UP = 1;

/**
 * Makes the system enlarge the process's table of open files before threads start. On Linux all threads share
 * this table, and it has 64 entries if the parent process has few files open. A thread whose file does not
 * fit waits 10 to 40 ms for a larger table, and so does every other thread that opens a file meanwhile. Here
 * a system thread waits instead, while the caller continues. Does nothing if the table is large enough, and
 * on other systems.
 */
export function makeRoomForFiles(threads = availableParallelism()): void {
  const size = tableSize();
  if (size === undefined || size >= FILES_OF_NODE + 2 * FILES_OF_CALLER + FILES_OF_THREAD * threads) return;
  const held: number[] = [];
  try {
    // These files fill the table, so that the next one, which a system thread opens, enlarges it.
    do held.push(openSync(devNull, 'r'));
    while (held[held.length - 1] < size - 1);
    open(devNull, 'r', (error, file) => {
      if (error) return;
      close(file, () => undefined);
      makeRoomForFiles(threads);
    });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TAKEN_UP);
  } catch {
    // The process may open no more files; requireLimits reports that.
  } finally {
    for (const file of held) closeSync(file);
  }
}

/** Places of the process's table of open files; undefined if the system does not report them. */
export function tableSize(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const size = /^FDSize:\s+(\d+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return size === undefined ? undefined : Number(size);
  } catch {
    return undefined; // A container may hide it.
  }
}
