import type { ByteCursor } from './byte-cursor.ts';

export const ZSTD_MAGIC = 0xfd2fb528;

/** True for the magic numbers of skippable frames, which lz4 and zstd share. */
export function isSkippable(magic: number): boolean {
  return magic >>> 4 === 0x184d2a5;
}

/** Largest piece of a frame that is yielded at once. */
const PIECE = 1 << 20;

/**
 * The bytes of one zstd frame (RFC 8878, section 3.1.1), in pieces, without decompressing it. The cursor must
 * be at the frame's magic number. Node's decompressor stops silently after a frame, and files of several
 * frames are common (`cat`, pzstd), so each frame gets its own decompressor. A truncated frame ends early.
 */
export async function* zstdFrame(cursor: ByteCursor): AsyncGenerator<Uint8Array> {
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
