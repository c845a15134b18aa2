import * as zlib from 'node:zlib';
import type { UnpackPage } from './unpack-page.ts';

/** Larger pages are left to the usual decompressor, since a damaged header may claim any size. */
const LARGEST = 1 << 22;

/** Undocumented members of Node's decompressor, which zlib's own functions for whole buffers use. */
interface Decompressor {
  readonly destroyed: boolean;
  /** Output room and input that the last write left. */
  readonly _writeState: Uint32Array;
  readonly _handle: {
    writeSync(
      flush: number,
      from: Uint8Array,
      start: number,
      length: number,
      to: Uint8Array,
      at: number,
      room: number,
    ): void;
  };
}

/**
 * The thread's decompressor. Undefined before its first page; false if this Node has no such decompressor.
 */
let kept: Decompressor | false | undefined;

function isDecompressor(value: object): value is Decompressor {
  if (!('_handle' in value && '_writeState' in value && 'destroyed' in value)) return false;
  const { _handle: handle, _writeState: state } = value;
  const isHandle = typeof handle === 'object' && handle !== null && 'writeSync' in handle;
  return isHandle && state instanceof Uint32Array && state.length === 2;
}

function decompressor(): Decompressor | false {
  if (kept !== undefined && !(kept && kept.destroyed)) return kept;
  const made = zlib.createZstdDecompress();
  // `whole` reports the error.
  made.on('error', () => {});
  return (kept = isDecompressor(made) && made);
}

/**
 * Decompresses zstd with one decompressor for all pages of a thread. zstdDecompressSync makes one for each
 * call, which takes as long as decompressing a page. A page with an unexpected result is passed to `whole`.
 * The result's memory is reused by the next call.
 */
export function unpackZstd(whole: UnpackPage): UnpackPage {
  let room = new Uint8Array(0);
  return (bytes, size) => {
    const own = size <= LARGEST && decompressor();
    if (!own) return whole(bytes, size);
    // Room for one more byte, to detect a page that is too long.
    if (room.length <= size) room = new Uint8Array(2 * size + 1);
    const { ZSTD_e_end: end } = zlib.constants;
    own._handle.writeSync(end, bytes, 0, bytes.length, room, 0, size + 1);
    const [left, unread] = own._writeState;
    if (!own.destroyed && left === 1 && unread === 0) return room.subarray(0, size);
    kept = undefined;
    return whole(bytes, size);
  };
}
