import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { unpackZstd } from '../../../connectors/parquet/pages/column-pages.ts';

const page = (length: number, step: number) => Uint8Array.from({ length }, (_, i) => (i * step) >> 3);

describe('pages of zstd', () => {
  it('are unpacked by one decompressor, also after damaged ones', () => {
    const left: number[] = [];
    const unpack = unpackZstd((bytes, size) => {
      left.push(size);
      return zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, size) });
    });
    for (const [length, step] of [
      [40_000, 7],
      [1, 1],
      [0, 1],
      [100_000, 3],
    ])
      expect(unpack(zstdCompressSync(page(length, step)), length)).toEqual(page(length, step));
    expect(left).toEqual([]);
    const good = page(5000, 11);
    const stored = zstdCompressSync(good);
    const isUnpacked = () => expect(unpack(stored, good.length)).toEqual(good);
    expect(() =>
      unpack(
        stored.map((byte, i) => (i === 9 ? byte ^ 255 : byte)),
        good.length,
      ),
    ).toThrow();
    isUnpacked();
    expect(() => unpack(stored.subarray(0, stored.length / 2), good.length).length).toThrow();
    isUnpacked();
    expect(() => unpack(stored, good.length - 1)).toThrow(/Cannot create a Buffer larger/);
    isUnpacked();
    expect(unpack(stored, good.length + 1)).toHaveLength(good.length);
    isUnpacked();
    expect(left).toEqual([5000, 5000, 4999, 5001]);
  });
});
