import * as zlib from 'node:zlib';
import { hasZstd } from '../../compression/compressions.ts';
import { unpackBlock } from '../../compression/lz4-block.ts';
import type { PageKernel } from './page-kernel.ts';

/** Decompresses a page to exactly `size` bytes. Throws an Error if the bytes are damaged. */
export type UnpackPage = (bytes: Uint8Array, size: number) => Uint8Array;

/**
 * At first at most this number of bytes is allocated for a page's values, since a damaged header may claim
 * any size.
 */
const FIRST_BYTES = 1 << 22;

const options = (size: number) => ({
  chunkSize: Math.max(64, Math.min(size, FIRST_BYTES)),
  maxOutputLength: Math.max(1, size),
});

/** Page codecs that Node or a kernel decompresses, by name in lower case. */
export const pageCodecs: Readonly<Record<string, UnpackPage>> = {
  uncompressed: (bytes) => bytes,
  gzip: (bytes, size) => zlib.gunzipSync(bytes, options(size)),
  brotli: (bytes, size) => zlib.brotliDecompressSync(bytes, options(size)),
  lz4_raw: (bytes, size) => {
    // A byte of lz4 unpacks to at most 255 bytes, so a larger size in the header need not be allocated.
    const target = new Uint8Array(Math.min(size, 255 * bytes.length));
    return target.subarray(0, unpackBlock(bytes, target, 0, target.length));
  },
  ...(hasZstd() && {
    zstd: (bytes: Uint8Array, size: number) => zlib.zstdDecompressSync(bytes, options(size)),
  }),
};

/** Decompresses Snappy in the kernel. The page is copied out, since the kernel's memory may move. */
export function unpackSnappy(kernel: PageKernel): UnpackPage {
  let [place, room] = [0, 0];
  return (bytes, size) => {
    // A byte of Snappy unpacks to at most 64 bytes.
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
