import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { DataError } from '../../engine/errors.ts';
import { isUrl } from '../files/path-kinds.ts';
import { smallFile } from '../files/small-file.ts';
import { HttpFile } from '../http/http-file.ts';

/** An open file of the disk (Node's FileHandle is one) or of a web server that can be read at any place. */
export interface RandomAccess {
  stat(): Promise<{ readonly size: number }>;
  /** Fills `bytes[offset..offset + length)` from `position` on; fewer bytes than that only at the end. */
  read(
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** Counts the reads of an open file, so that tests and benches measure work and not only time. */
export interface FetchCounter {
  fetches: number;
  bytes: number;
  /** The error of a failed read: the decoder breaks down on it without naming the reason. */
  failure?: unknown;
}

/**
 * Opens a path or an http(s) URL; `waits` is of ReadSplitOptions. Throws the error of the file system or the
 * server, DataError for pipes and devices.
 */
export async function openRandomAccess(file: string, waits = false): Promise<RandomAccess> {
  if (isUrl(file)) return HttpFile.open(file);
  const whole = smallFile(file);
  if (whole !== undefined) return inMemory(whole);
  // An open pipe would wait for its writer.
  const found = waits ? statSync(file) : await stat(file);
  if (!found.isFile() && !found.isDirectory())
    throw new DataError('this is no regular file, and Parquet is read from its end', {
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
