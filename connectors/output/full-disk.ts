import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { DISK_FULL } from '../files/file-problem.ts';

export function isDiskFull(error: unknown): error is CapacityError {
  return error instanceof CapacityError && error.summary === DISK_FULL;
}

/**
 * If an output inside this one has already reported a full disk, returns the system's error from that report;
 * other errors are returned unchanged.
 */
export function causeOfFull(error: unknown): unknown {
  return error instanceof CapacityError && isDiskFull(error.cause) ? error.cause : error;
}

/**
 * Error of a full disk, with the output's name, the space it needs in words, and the bytes that are free
 * after its removal.
 */
export function diskFull(
  cause: unknown,
  file: string,
  need: string,
  free: number | undefined,
): CapacityError {
  const room = free === undefined ? '' : `, and ${formatBytes(free)} are free`;
  return new CapacityError(`${DISK_FULL}: the output needs ${need}${room}`, {
    phase: 'write',
    file,
    advice: 'Free some space or choose another output; nothing was left behind',
    cause,
  });
}

/** Size of a file, or of all files below a folder; 0 if it does not exist. */
export async function bytesBelow(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || !found.isDirectory()) return found?.size ?? 0;
  const sizes = await Promise.all((await readdir(path)).map((name) => bytesBelow(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Bytes that this process may use on the disk of a folder; undefined if the system does not report them. */
export async function freeBytes(folder: string): Promise<number | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && found.bavail * found.bsize;
}
