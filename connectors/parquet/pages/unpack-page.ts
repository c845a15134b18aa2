import * as zlib from 'node:zlib';
import { hasZstd } from '../../compression/compressions.ts';
import { unpackBlock } from '../../compression/lz4-block.ts';
import type { PageKernel } from './page-kernel.ts';

/** Unpacks the bytes of a page to exactly `size` bytes; throws an Error where they are damaged. */
export type UnpackPage = (bytes: Uint8Array, size: number) => Uint8Array;

/**
 * Most bytes that are taken for a page's values before one of them is there: a damaged header may tell of
 * more.
 */
const FIRST_BYTES = 1 << 22;

const options = (size: number) => ({
  chunkSize: Math.max(64, Math.min(size, FIRST_BYTES)),
  maxOutputLength: Math.max(1, size),
});

/** The codecs of pages that Node or a kernel unpacks, by their names in lower case. */
export const pageCodecs: Readonly<Record<string, UnpackPage>> = {
  uncompressed: (bytes) => bytes,
  gzip: (bytes, size) => zlib.gunzipSync(bytes, options(size)),
  brotli: (bytes, size) => zlib.brotliDecompressSync(bytes, options(size)),
  lz4_raw: (bytes, size) => {
    // No byte of such a block gives more than 255.
    const target = new Uint8Array(Math.min(size, 255 * bytes.length));
    return target.subarray(0, unpackBlock(bytes, target, 0, target.length));
  },
  ...(hasZstd() && {
    zstd: (bytes: Uint8Array, size: number) => zlib.zstdDecompressSync(bytes, options(size)),
  }),
};

/** Snappy, by the kernel, whose memory may move: the page is copied out. */
export function unpackSnappy(kernel: PageKernel): UnpackPage {
  let [place, room] = [0, 0];
  return (bytes, size) => {
    // No element of one byte gives more than 64.
    if (size > 64 * bytes.length) throw new Error('a size that no such block has');
    if (bytes.length + size > room) {
      room = 2 * (bytes.length + size);
      place = kernel.reserve(room);
    }
    kernel.bytes.set(bytes, place);
    const out = place + bytes.length;
    if (kernel.functions.unpackSnappy(place, bytes.length, out, size) === 0)
      throw new Error('the block does not unpack');
    return kernel.bytes.slice(out, out + size);
  };
}
