import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { DataError } from '../../engine/errors.ts';
import { HttpFile } from '../http/http-file.ts';
import type { UrlVersions } from '../http/request.ts';
import { fileProblem } from './file-problem.ts';
import { isUrl } from './path-kinds.ts';
import { smallFile } from './stored-bytes.ts';

/** An open file with random access: on disk (such as Node's FileHandle) or on a web server. */
export interface RandomAccess {
  stat(): Promise<{ readonly size: number }>;
  /** Fills `bytes[offset..offset + length)` from `position` on; fewer bytes only at the end of the file. */
  read(
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
  /** See HttpFile; absent for files of the disk. */
  verify?(): Promise<void>;
  close(): Promise<void>;
}

/** Counts the reads of an open file, so that tests and benches can measure work as well as time. */
export interface FetchCounter {
  fetches: number;
  bytes: number;
  /** Error of a failed read: the decoder crashes on it without passing on the reason. */
  failure?: unknown;
}

/**
 * Opens a path or an http(s) URL. `waits`: see ReadSplitOptions. Throws an error that names the file,
 * DataError for pipes and devices.
 */
export async function openRandomAccess(
  file: string,
  waits = false,
  versions?: UrlVersions,
): Promise<RandomAccess> {
  if (isUrl(file)) return HttpFile.open(file, versions);
  try {
    return await openOnDisk(file, waits);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  }
}

async function openOnDisk(file: string, waits: boolean): Promise<RandomAccess> {
  const whole = smallFile(file);
  if (whole !== undefined) return inMemory(whole);
  // Checked first, since opening a pipe would wait for its writer.
  const found = waits ? statSync(file) : await stat(file);
  if (!found.isFile() && !found.isDirectory())
    throw new DataError('this is not a regular file, and Parquet is read from its end', {
      phase: 'read',
      file,
      advice: 'Copy it into a file first',
    });
  return waits ? waitingFile(openSync(file, 'r')) : open(file, 'r');
}

function waitingFile(handle: number): RandomAccess {
  return {
    stat: async () => fstatSync(handle),
    read: async (bytes, offset, length, position) => ({
      bytesRead: readSync(handle, bytes, offset, length, position),
    }),
    close: async () => closeSync(handle),
  };
}

function inMemory(whole: Uint8Array): RandomAccess {
  return {
    stat: async () => ({ size: whole.length }),
    read: async (bytes, offset, length, position) => {
      const read = whole.subarray(position, position + length);
      bytes.set(read, offset);
      return { bytesRead: read.length };
    },
    close: async () => {},
  };
}

/** Reads `length` bytes from `position`. Throws DataError if the file ends before. */
export async function readExactly(
  handle: RandomAccess,
  file: string,
  position: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  await readInto(handle, file, bytes, position);
  return bytes;
}

/** Fills `bytes` from `position` on. Throws DataError if the file ends before. */
export async function readInto(
  handle: RandomAccess,
  file: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await handle
      .read(bytes, done, bytes.length - done, position + done)
      .catch((error: unknown) => {
        throw fileProblem(error, 'read', file);
      });
    if (bytesRead === 0)
      throw new DataError('the file became shorter while it was read', { phase: 'read', file });
    done += bytesRead;
  }
}
