import { existsSync, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError, CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { errorCode, fileProblem, DISK_FULL } from '../files/file-problem.ts';

/** Most pieces in one system call (IOV_MAX). */
const MOST_PIECES = 1024;

/** Creates a file for writing. Throws if it exists already or cannot be made. */
export async function createFile(file: string): Promise<FileHandle> {
  return open(file, 'wx').catch((error: unknown) => {
    throw fileProblem(error, 'write', file);
  });
}

/** Appends all pieces with few system calls. Returns the number of bytes. */
export async function appendAll(handle: FileHandle, pieces: readonly Uint8Array[]): Promise<number> {
  let bytes = 0;
  let left = pieces.filter(({ length }) => length > 0);
  while (left.length > 0) {
    let { bytesWritten } = await handle.writev(left.slice(0, MOST_PIECES));
    bytes += bytesWritten;
    let done = 0;
    while (done < left.length && bytesWritten >= left[done].length) bytesWritten -= left[done++].length;
    left = left.slice(done);
    if (bytesWritten > 0) left[0] = left[0].subarray(bytesWritten);
  }
  return bytes;
}

/** Waits until the bytes are on the disk, if the file system supports this. */
export async function syncHandle(handle: FileHandle): Promise<void> {
  await handle.sync().catch((error: unknown) => {
    if (!['EPERM', 'EINVAL', 'EISDIR', 'EBADF'].includes(errorCode(error) ?? '')) throw error;
  });
}

/** Waits until a file, or all files of a folder, are on the disk. */
export async function syncAll(path: string): Promise<void> {
  if ((await stat(path)).isDirectory())
    await Promise.all((await readdir(path)).map((name) => syncAll(join(path, name))));
  await syncPath(path);
}

/** Waits until a file's bytes, or a folder's list of names, are on the disk. */
export async function syncPath(path: string): Promise<void> {
  // Some systems cannot open folders. That is accepted, since syncing the files matters more.
  const handle = await open(path, 'r').catch(() => undefined);
  if (handle === undefined) return;
  try {
    await syncHandle(handle);
  } finally {
    await handle.close();
  }
}

/**
 * Makes a folder and its missing parents, one after the other; returns the first that was made. Throws the file
 * system's error, with what it had made removed. (Node's own recursive option never ends in /proc, and reports
 * that the folder does not exist on a read-only file system.)
 */
export async function makeFolders(folder: string): Promise<string | undefined> {
  const missing: string[] = [];
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.unshift(at);
  // Throws if it exists and is not a folder.
  if (missing.length === 0) return mkdir(folder, { recursive: true });
  const made: string[] = [];
  try {
    for (const one of missing) if (await makeFolder(one)) made.push(one);
  } catch (error) {
    for (const one of made.toReversed()) await rmdir(one).catch(() => undefined);
    throw error;
  }
  return made[0];
}

/** Makes a folder in an existing one; false if another process has made it meanwhile. */
async function makeFolder(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return false;
    if (found !== undefined) throw error;
    throw new UsageError(`${folder} is a link to a folder that does not exist`, {
      phase: 'write',
      advice: 'Make the folder, or remove the link',
      cause: error,
    });
  }
}

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
