import { Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { DataError } from '../../engine/errors.ts';
import { errorCode, fileProblem, messageOf } from '../files/file-problem.ts';
import { inputName, isUrl, STANDARD_STREAM } from '../files/path-kinds.ts';
import { firstBytes, isRegularFile, storedBytes } from '../files/stored-bytes.ts';
import type { UrlVersions } from '../http/request.ts';
import { ByteCursor } from './byte-cursor.ts';
import { compressionOf, requireZstd } from './compressions.ts';
import { LZ4_MAGIC, unpackLz4 } from './lz4-frame.ts';

/**
 * Bytes of a file or of stdin. They are decompressed if the first bytes are the mark of gzip, zstd or lz4;
 * the file's extension matters only for inputs too short for a mark. `size`: see storedBytes. A file of
 * several compressed streams gives the contents of all. Throws DataError that names the file for data that
 * are truncated or damaged.
 */
export async function* unpackedBytes(
  path: string,
  size?: number,
  versions?: UrlVersions,
): AsyncGenerator<Uint8Array> {
  const file = inputName(path);
  const chunks = storedBytes(path, size, versions);
  const cursor = new ByteCursor(chunks);
  try {
    const head = await cursor.peek(4);
    if (isTooShort(path, head)) throw damaged(compressionOf(path).compression, true, file);
    if (isGzip(head))
      yield* throughZlib(cursor.all(), zlib.createGunzip({ chunkSize: 1 << 18 }), 'gzip', file);
    else if (isFrame(magicOf(head))) yield* framesOf(cursor, file);
    else yield* cursor.all();
  } finally {
    await chunks.return(undefined);
  }
}

/** True for an uncompressed file on disk, so that reading can start in its middle. */
export function isPlainFile(file: string): boolean {
  if (file === STANDARD_STREAM || isUrl(file) || !isRegularFile(file)) return false;
  const head = firstBytes(file, 4);
  return !isTooShort(file, head) && !isGzip(head) && !isFrame(magicOf(head));
}

/** True for a file whose name has the extension of a compression but which is shorter than its mark. */
function isTooShort(path: string, head: Uint8Array): boolean {
  return head.length > 0 && head.length < 4 && compressionOf(path).compression !== 'none';
}

function isGzip(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

function isFrame(magic: number): boolean {
  return magic === ZSTD_MAGIC || magic === LZ4_MAGIC || isSkippable(magic);
}

/** The content of consecutive frames of zstd and lz4. */
async function* framesOf(cursor: ByteCursor, file: string): AsyncGenerator<Uint8Array> {
  let kind = 'compressed';
  for (let head = await cursor.peek(4); head.length > 0; head = await cursor.peek(4)) {
    const magic = magicOf(head);
    if (magic === ZSTD_MAGIC) {
      kind = 'zstd';
      requireZstd('read', file);
      yield* throughZlib(zstdFrame(cursor), zlib.createZstdDecompress({ chunkSize: 1 << 18 }), kind, file);
    } else if (magic === LZ4_MAGIC) {
      kind = 'lz4';
      await cursor.take(4);
      yield* lz4Frame(cursor, file);
    } else if (isSkippable(magic)) {
      const skipped = await cursor.take(8);
      const length = skipped.length < 8 ? 1 : new DataView(skipped.buffer).getUint32(4, true);
      for (let left = length; left > 0;) {
        const part = await cursor.some(left);
        if (part === undefined) throw damaged(kind, true, file);
        left -= part.length;
      }
    } else throw damaged(kind, head.length < 4, file);
  }
}

async function* lz4Frame(cursor: ByteCursor, file: string): AsyncGenerator<Uint8Array> {
  const steps = unpackLz4();
  let given: Uint8Array = new Uint8Array(0);
  for (;;) {
    let step: ReturnType<typeof steps.next>;
    try {
      step = steps.next(given);
    } catch (error) {
      throw damaged('lz4', false, file, error);
    }
    if (step.done) return;
    if (typeof step.value === 'number') {
      given = await cursor.take(step.value);
      if (given.length < step.value) throw damaged('lz4', true, file);
    } else yield step.value.slice();
  }
}

async function* throughZlib(
  chunks: AsyncGenerator<Uint8Array>,
  unpack: Transform,
  kind: string,
  file: string,
): AsyncGenerator<Uint8Array> {
  const source = Readable.from(chunks, { objectMode: false, highWaterMark: 1 << 20 });
  source.on('error', (error) => unpack.destroy(error));
  source.pipe(unpack);
  try {
    for await (const chunk of unpack) yield chunk as Uint8Array;
  } catch (error) {
    const code = errorCode(error);
    if (code?.startsWith('Z_') || code?.startsWith('ZSTD_'))
      throw damaged(kind, code === 'Z_BUF_ERROR', file, error);
    throw fileProblem(error, 'read', file);
  } finally {
    source.destroy();
    unpack.destroy();
  }
}

function damaged(kind: string, isCut: boolean, file: string, cause?: unknown): DataError {
  const detail = cause === undefined || isCut ? '' : `: ${messageOf(cause)}`;
  return new DataError(`the ${kind} data are ${isCut ? 'cut off' : 'damaged'}${detail}`, {
    phase: 'read',
    file,
    cause,
    advice: 'Write or copy the file again',
  });
}

function magicOf(head: Uint8Array): number {
  return head.length < 4 ? 0 : new DataView(head.buffer, head.byteOffset, 4).getUint32(0, true);
}

const ZSTD_MAGIC = 0xfd2fb528;

/** True for the magic numbers of skippable frames, which lz4 and zstd share. */
function isSkippable(magic: number): boolean {
  return magic >>> 4 === 0x184d2a5;
}

/** Largest piece of a frame that is yielded at once. */
const PIECE = 1 << 20;

/**
 * The bytes of one zstd frame (RFC 8878, section 3.1.1), in pieces, without decompressing it. The cursor must
 * be at the frame's magic number. Node's decompressor stops silently after a frame, and files of several
 * frames are common (`cat`, pzstd), so each frame gets its own decompressor. A truncated frame ends early.
 */
async function* zstdFrame(cursor: ByteCursor): AsyncGenerator<Uint8Array> {
  const start = await cursor.take(5);
  yield start;
  const flags = start[4];
  const single = (flags & 0x20) !== 0;
  const contentSize = [single ? 1 : 0, 2, 4, 8][flags >> 6];
  yield* pieces(cursor, (single ? 0 : 1) + [0, 1, 2, 4][flags & 3] + contentSize);
  for (;;) {
    const head = await cursor.take(3);
    yield head;
    if (head.length < 3) return;
    const bits = head[0] | (head[1] << 8) | (head[2] << 16);
    // A block of type 1 (RLE) has one byte, which is repeated.
    yield* pieces(cursor, ((bits >> 1) & 3) === 1 ? 1 : bits >> 3);
    if ((bits & 1) !== 0) break;
  }
  if ((flags & 4) !== 0) yield* pieces(cursor, 4);
}

async function* pieces(cursor: ByteCursor, length: number): AsyncGenerator<Uint8Array> {
  for (let left = length; left > 0;) {
    const part = await cursor.some(Math.min(left, PIECE));
    if (part === undefined) return;
    left -= part.length;
    yield part;
  }
}
