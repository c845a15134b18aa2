import { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Compression } from './compressions.ts';
import { Lz4Packer } from './lz4-frame.ts';

/** A stream that compresses what is written to it; undefined for 'none'. */
export function packing(compression: Compression): Transform | undefined {
  if (compression === 'gzip') return zlib.createGzip({ level: 6 });
  if (compression === 'zstd')
    return zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_checksumFlag]: 1 } });
  return compression === 'lz4' ? lz4Packing() : undefined;
}

function lz4Packing(): Transform {
  const packer = new Lz4Packer();
  let begun = false;
  const begin = (stream: Transform) => {
    if (!begun) stream.push(packer.begin());
    begun = true;
  };
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      begin(this);
      done(null, packer.pack(chunk));
    },
    flush(done) {
      begin(this);
      done(null, packer.end());
    },
  });
}
