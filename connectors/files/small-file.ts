import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { readRegular } from '../../engine/regular-file.ts';

const SMALL_BYTES = 1 << 18;

/** Most bytes of a small file, even if it grows while it is read. */
const MOST_BYTES = 1 << 24;

/** After this number of milliseconds of synchronous reading, other work of the thread gets a turn. */
const TURN = 10;
let turned = performance.now();

/**
 * The bytes of a small regular file; undefined for a larger one and for other kinds of files. Reads
 * synchronously, which takes a few microseconds for each system call; through Node's thread pool a call takes
 * about a hundred, and a file needs several. Throws the file system's error.
 */
export function smallFile(file: string): Uint8Array | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found?.isFile() && found.size <= SMALL_BYTES ? readRegular(file, MOST_BYTES) : undefined;
}

/**
 * Gives other work of the thread, such as a cancellation, a turn between files that are read synchronously.
 */
export async function otherWork(): Promise<void> {
  if (performance.now() - turned < TURN) return;
  await setImmediate();
  turned = performance.now();
}
