import { constants, createReadStream, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import { DataError } from '../../engine/errors.ts';
import { closeRead, closeReader, readRegular } from '../../engine/regular-file.ts';
import { waitForOther } from '../../engine/waits.ts';
import type { UrlVersions } from '../http/request.ts';
import { fileProblem } from './file-problem.ts';
import { shorterFile } from './file-stamp.ts';
import { inputName, isUrl, STANDARD_STREAM } from './path-kinds.ts';

/**
 * Stored bytes of a file, a pipe, stdin or a file on a web server, in chunks. Throws DataError that names the
 * file. `size`: bytes to read of a file on disk; a shorter file is an error.
 */
export async function* storedBytes(
  file: string,
  size = Number.POSITIVE_INFINITY,
  versions?: UrlVersions,
): AsyncGenerator<Uint8Array> {
  if (isUrl(file)) {
    // Few runs read from a server.
    yield* (await import('../http/stream-url.ts')).streamUrl(file, versions);
    return;
  }
  if (file === STANDARD_STREAM) refuseFolder();
  const whole = file === STANDARD_STREAM ? undefined : wholeOf(file);
  if (whole !== undefined) {
    const part = partOf(whole, 0, size, file);
    if (part.length > 0) yield part;
    return;
  }
  const stream: Readable =
    file === STANDARD_STREAM
      ? process.stdin
      : isPipe(file)
        ? openPipe(file)
        : createReadStream(file, { highWaterMark: 1 << 18, end: size - 1 });
  let length = 0;
  try {
    const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    for (;;) {
      const chunk = await waitForOther(chunks.next());
      if (chunk.done) break;
      length += chunk.value.length;
      yield chunk.value;
    }
  } catch (error) {
    throw fileProblem(error, 'read', inputName(file));
  } finally {
    stream.destroy();
  }
  if (size !== Number.POSITIVE_INFINITY && length < size) throw shorterFile(file, size, length);
}

/** Node reads a folder as an empty stdin. */
function refuseFolder(): void {
  if (!fstatSync(0, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new DataError('this is a folder where a file was expected', {
    phase: 'read',
    file: 'stdin',
    advice: 'Name the folder as an input',
  });
}

/** A range of a whole file in memory. Throws DataError if the file has fewer than `size` bytes. */
function partOf(whole: Uint8Array, position: number, size: number, file: string): Uint8Array {
  if (size !== Number.POSITIVE_INFINITY && whole.length < size) throw shorterFile(file, size, whole.length);
  return whole.subarray(position, size);
}

/** Opens a pipe without waiting for its writer: a thread that waits for one could not be stopped. */
function openPipe(file: string): Readable {
  return new Socket({
    fd: openSync(file, constants.O_RDONLY | constants.O_NONBLOCK),
    readable: true,
    writable: false,
  });
}

/**
 * Stored bytes of a file on disk, from `position` to `size`; a shorter file is an error. A chunk is valid
 * until the next one: its memory is reused, which takes a fifth of the processor time of a stream. Throws
 * DataError that names the file.
 */
export async function* bytesFrom(file: string, position: number, size: number): AsyncGenerator<Uint8Array> {
  const whole = wholeOf(file);
  if (whole !== undefined) {
    const part = partOf(whole, position, size, file);
    if (part.length > 0) yield part;
    return;
  }
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw fileProblem(error, 'read', file);
  });
  try {
    const bytes = new Uint8Array(1 << 20);
    for (let at = position; at < size;) {
      const wanted = Math.min(bytes.length, size - at);
      // A worker thread that reads splits has nothing else to do meanwhile, so it reads synchronously.
      const bytesRead = isMainThread
        ? (await handle.read(bytes, 0, wanted, at)).bytesRead
        : readSync(handle.fd, bytes, 0, wanted, at);
      if (bytesRead === 0 && size !== Number.POSITIVE_INFINITY) throw shorterFile(file, size, at);
      if (bytesRead === 0) return;
      yield bytes.subarray(0, bytesRead);
      at += bytesRead;
    }
  } catch (error) {
    throw fileProblem(error, 'read', file);
  } finally {
    await closeReader(handle);
  }
}

/** All bytes of a small file (see smallFile). Throws DataError that names the file. */
function wholeOf(file: string): Uint8Array | undefined {
  try {
    return smallFile(file);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  }
}

/**
 * First bytes of a file, fewer if it is shorter. Empty for a pipe, which would lose them. Throws DataError
 * that names the file.
 */
export function firstBytes(file: string, length: number): Uint8Array {
  return isPipe(file) ? new Uint8Array(0) : bytesAt(file, 0, length);
}

/** One byte of a file; undefined after its end. Throws DataError that names the file. */
export function byteAt(file: string, position: number): number | undefined {
  return bytesAt(file, position, 1)[0];
}

function bytesAt(file: string, position: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let handle: number | undefined;
  try {
    handle = openSync(file, 'r');
    let done = 0;
    // A single read may return fewer bytes than requested, although more follow.
    for (let more = 1; more > 0 && done < length; done += more)
      more = readSync(handle, bytes, done, length - done, position + done);
    return bytes.subarray(0, done);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  } finally {
    if (handle !== undefined) closeRead(handle);
  }
}

/** Size of a file in bytes. Throws DataError that names the file. */
export function fileSize(file: string): number {
  return statOf(file).size;
}

/** True for a regular file, such as one on disk; false for a pipe. Throws DataError that names the file. */
export function isRegularFile(file: string): boolean {
  return statOf(file).isFile();
}

/** True for a named pipe. */
export function isPipe(file: string): boolean {
  try {
    return statSync(file).isFIFO();
  } catch {
    return false;
  }
}

function statOf(file: string): Stats {
  try {
    return statSync(file);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  }
}

/**
 * One array with the bytes of all parts. It is new memory, so that arrays of any element type can be views of
 * it.
 */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

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
