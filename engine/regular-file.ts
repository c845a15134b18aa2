import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { DataError } from './errors.ts';
import { formatBytes } from './format.ts';

/** An open file; its opener closes the descriptor. */
export interface RegularFile {
  readonly fd: number;
  /** Bytes when the file was opened; 0 for files that the kernel generates, such as in /proc. */
  readonly size: number;
}

export interface RegularFileOptions {
  /** For messages: "read", "load", ... */
  readonly phase?: string;
  /** Maximum size of the file in bytes. Default: no maximum. */
  readonly most?: number;
  /** False refuses a path whose last component is a symbolic link. Default: true. */
  readonly links?: boolean;
}

/**
 * Opens a regular file for reading without ever blocking. Refuses pipes (which wait for a writer), devices
 * (which may have no end) and folders. The path is checked before the file is opened, since opening a pipe or
 * a device has effects, and again after that, since the path may have been replaced meanwhile. Throws
 * DataError for these and for files of more than `most` bytes, else the error of the file system.
 */
export function openRegular(
  file: string,
  { phase = 'read', most = Infinity, links = true }: RegularFileOptions = {},
): RegularFile {
  requireRegular(statSync(file), file, phase);
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (links ? 0 : (constants.O_NOFOLLOW ?? 0));
  const fd = openSync(file, flags);
  try {
    const found = fstatSync(fd);
    requireRegular(found, file, phase);
    if (found.size > most) throw tooLarge(found.size, most, file, phase);
    return { fd, size: found.size };
  } catch (error) {
    closeRead(fd);
    throw error;
  }
}

/**
 * All bytes of a regular file of at most `most` bytes, read synchronously. Throws the errors of
 * `openRegular`, and DataError if the file has grown beyond its size and `most`.
 */
export function readRegular(
  file: string,
  most: number,
  options: Omit<RegularFileOptions, 'most'> = {},
): Uint8Array<ArrayBuffer> {
  const { fd, size } = openRegular(file, { ...options, most });
  try {
    // One byte more than the size: the end of an unchanged file is found in one read.
    let bytes = new Uint8Array(size + 1);
    for (let length = 0; ;) {
      const read = readSync(fd, bytes, length, bytes.length - length, length);
      length += read;
      if (length > most) throw tooLarge(length, most, file, options.phase ?? 'read');
      if (read === 0) return bytes.subarray(0, length);
      if (length === bytes.length) {
        const larger = new Uint8Array(Math.min(most + 1, 2 * length + 4096));
        larger.set(bytes);
        bytes = larger;
      }
    }
  } finally {
    closeRead(fd);
  }
}

/**
 * Closes a file that was only read. Its bytes have been read, and systems release the descriptor also when
 * they report an error, so the error is ignored.
 */
export function closeRead(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // See above.
  }
}

export async function closeReader(handle: { close(): Promise<void> } | undefined): Promise<void> {
  await handle?.close().catch(() => undefined);
}

function requireRegular(found: Stats, file: string, phase: string): void {
  if (found.isFile()) return;
  if (found.isDirectory())
    throw new DataError('this is a folder where a file was expected', {
      phase,
      file,
      advice: 'Check the path',
    });
  const kind = found.isFIFO() ? 'pipe' : found.isSocket() ? 'socket' : 'device';
  throw new DataError(`this is a ${kind}, and a regular file is needed`, {
    phase,
    file,
    advice: 'Write its contents into a file first',
  });
}

function tooLarge(size: number, most: number, file: string, phase: string): DataError {
  return new DataError(`the file has ${formatBytes(size)}, more than ${formatBytes(most)}`, {
    phase,
    file,
    advice: 'Check the path',
  });
}
