import { CompressionType, compressionRegistry } from 'apache-arrow';
import * as zlib from 'node:zlib';
import { hasZstd } from '../compression/compressions.ts';
import { packLz4Bytes, unpackLz4Bytes } from '../compression/lz4-frame.ts';

/** Compressions of the buffers in record batches. */
export const arrowCodecs = ['uncompressed', 'lz4', 'zstd'] as const;
export type ArrowCodec = (typeof arrowCodecs)[number];

/** Largest size of an uncompressed buffer. A larger size is treated as damage. */
const LARGEST_BUFFER = 2 ** 29;

/** Registers lz4 and zstd with apache-arrow, unless the program has registered codecs of its own. */
export function registerCodecs(): void {
  if (compressionRegistry.get(CompressionType.LZ4_FRAME) === null) {
    compressionRegistry.set(CompressionType.LZ4_FRAME, {
      decode: (bytes) => unpackLz4Bytes(bytes, LARGEST_BUFFER),
      encode: packLz4Bytes,
    });
  }
  if (compressionRegistry.get(CompressionType.ZSTD) !== null || !hasZstd()) return;
  compressionRegistry.set(CompressionType.ZSTD, {
    decode: (bytes) => zlib.zstdDecompressSync(bytes, { maxOutputLength: LARGEST_BUFFER }),
    encode: (bytes) => zlib.zstdCompressSync(bytes),
  });
}

/** Options of apache-arrow's writers for a codec. */
export function writerOptions(codec: ArrowCodec): { readonly compressionType?: CompressionType } {
  if (codec === 'uncompressed') return {};
  registerCodecs();
  return { compressionType: codec === 'lz4' ? CompressionType.LZ4_FRAME : CompressionType.ZSTD };
}
