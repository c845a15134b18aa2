import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { readRegular } from '../../engine/regular-file.ts';

const SMALL_BYTES = 1 << 18;

/** Most bytes of a small file that grows while it is read. */
const MOST_BYTES = 1 << 24;

/** Milliseconds that the other work of a thread waits. */
const TURN = 10;
let turned = performance.now();

/**
 * The bytes of a small regular file; undefined for a larger one, and what is no such file. They are read by
 * the calling thread: a call of the system takes it some microseconds, and a hundred by way of Node's own
 * threads, and reading a file takes several calls. Throws the error of the file system.
 *
 */
export function smallFile(file: string): Uint8Array | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found?.isFile() && found.size <= SMALL_BYTES ? readRegular(file, MOST_BYTES) : undefined;
}

/** Lets the other work of the thread, such as a cancel, go on between files that never wait. */
export async function otherWork(): Promise<void> {
  if (performance.now() - turned < TURN) return;
  await setImmediate();
  turned = performance.now();
}
