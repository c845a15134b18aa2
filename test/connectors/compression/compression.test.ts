import fc from 'fast-check';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { compressionOf, hasZstd } from '../../../connectors/compression/compressions.ts';
import {
  Lz4Packer,
  packLz4Bytes,
  unpackLz4Bytes,
  XxHash32,
} from '../../../connectors/compression/lz4-frame.ts';
import { unpackedBytes } from '../../../connectors/compression/unpacked-bytes.ts';
import { ByteOutput } from '../../../connectors/output/byte-output.ts';
import { DataError } from '../../../engine/errors.ts';
import { isDeep, sampleSize } from '../../support/deep.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const golden = join(import.meta.dirname, '../../golden/compressed');
const ratings = Buffer.from(
  `user,item,rating\n${Array.from({ length: 20_000 }, (_, i) => `${i % 1000},${i % 7},${(i % 10) / 2}\n`).join('')}`,
);
const most = 1 << 30;

async function unpack(file: string): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of unpackedBytes(file)) parts.push(part);
  return Buffer.concat(parts);
}

let written = 0;
function unpackBytes(bytes: Uint8Array): Promise<Buffer> {
  const file = join(folder, String(written++));
  writeFileSync(file, bytes);
  return unpack(file);
}

async function fails(bytes: Uint8Array, pattern: RegExp): Promise<void> {
  const error = await unpackBytes(bytes).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
  expect(String(error)).toContain(folder);
}

/** Bytes with repetitions near and far, which are packed well, and noise, which is not. */
const anyBytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .record({ byte: fc.nat(255), times: fc.integer({ min: 1, max: 3000 }) })
        .map(({ byte, times }) => new Uint8Array(times).fill(byte)),
    ),
    { maxLength: 12 },
  )
  .chain((parts) =>
    fc
      .array(fc.nat(Math.max(0, parts.length - 1)), { maxLength: 20 })
      .map((order) => Buffer.concat(parts.length === 0 ? [] : order.map((at) => parts[at]))),
  );

describe('zstd', () => {
  test.skipIf(!hasZstd())(
    `a file is one frame, however few bytes are written${hasZstd() ? '' : ' (this Node has no zstd)'}`,
    async () => {
      for (const [name, pieces] of [
        ['none', []],
        ['one', ['a']],
        ['two', ['a', 'b']],
      ] as const) {
        const file = join(folder, `${name}.zst`);
        const output = await ByteOutput.open(file, { compression: 'zstd' });
        for (const piece of pieces) await output.write(Buffer.from(piece));
        await output.commit();
        const bytes = readFileSync(file);
        expect(bytes.lastIndexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))).toBe(0);
        expect((await unpack(file)).toString()).toBe(pieces.join(''));
      }
    },
  );
});

describe('lz4', () => {
  test.each(['linked.csv.lz4', 'block-checksums.csv.lz4'])('%s of the lz4 program', async (name) => {
    expect((await unpack(join(golden, name))).equals(ratings)).toBe(true);
    expect(Buffer.from(unpackLz4Bytes(readFileSync(join(golden, name)), most)).equals(ratings)).toBe(true);
  });

  test('any bytes come back, in any pieces', () => {
    fc.assert(
      fc.property(anyBytes, fc.array(fc.nat(5000), { maxLength: 4 }), (bytes, cuts) => {
        expect(Buffer.from(unpackLz4Bytes(packLz4Bytes(bytes), most)).equals(bytes)).toBe(true);
        const packer = new Lz4Packer();
        const ends = [...cuts, bytes.length].map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b);
        const pieces = ends.map((end, i) => packer.pack(bytes.subarray(ends[i - 1] ?? 0, end)));
        expect(
          Buffer.from(unpackLz4Bytes(Buffer.concat([packer.begin(), ...pieces, packer.end()]), most)).equals(
            bytes,
          ),
        ).toBe(true);
      }),
      { numRuns: sampleSize(150), seed: 5 },
    );
  });

  test('several blocks of 4 MiB', () => {
    const large = Buffer.concat(Array.from({ length: 60 }, () => ratings));
    const packed = packLz4Bytes(large);
    expect(packed.length).toBeLessThan(large.length / 4);
    expect(Buffer.from(unpackLz4Bytes(packed, most)).equals(large)).toBe(true);
    expect(() => unpackLz4Bytes(packed, large.length - 1)).toThrow(/unpacks to more than/);
  });

  test('the checksum is xxHash', () => {
    const text = Buffer.from('Nobody inspects the spammish repetition');
    expect(new XxHash32().digest()).toBe(0x02cc5d05);
    expect(new XxHash32().update(text).digest()).toBe(0xe2293b2f);
    for (let cut = 0; cut < text.length; cut++)
      expect(new XxHash32().update(text.subarray(0, cut)).update(text.subarray(cut)).digest()).toBe(
        0xe2293b2f,
      );
  });

  test('cut off anywhere, and any byte changed: an error that names the file', async () => {
    const packed = packLz4Bytes(ratings.subarray(0, 3000));
    for (let length = 5; length < packed.length; length += isDeep ? 7 : 70)
      await fails(packed.subarray(0, length), /the lz4 data are cut off/);
    for (let at = 4; at < packed.length; at += isDeep ? 5 : 50) {
      const damaged = Buffer.from(packed);
      damaged[at] ^= 255;
      await fails(damaged, /the lz4 data are (damaged|cut off)/);
    }
  });
});

describe.runIf(hasZstd())('zstd', () => {
  test('a file of the zstd program', async () => {
    expect((await unpack(join(golden, 'ratings.csv.zst'))).equals(ratings)).toBe(true);
  });

  test('frames that follow each other, and frames to be skipped', async () => {
    const [first, second] = [zstdCompressSync(ratings), zstdCompressSync(ratings.subarray(0, 10))];
    const skipped = Buffer.from([0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    const both = Buffer.concat([ratings, ratings.subarray(0, 10)]);
    expect((await unpackBytes(Buffer.concat([first, second]))).equals(both)).toBe(true);
    expect((await unpackBytes(Buffer.concat([skipped, first, skipped, second, skipped]))).equals(both)).toBe(
      true,
    );
    expect((await unpackBytes(zstdCompressSync(Buffer.alloc(0)))).length).toBe(0);
  });

  test('one that ends early, one that is damaged, and one with other bytes behind it', async () => {
    const packed = zstdCompressSync(ratings);
    for (const length of [5, 12, packed.length >> 1, packed.length - 1])
      await fails(packed.subarray(0, length), /the zstd data are cut off/);
    await fails(Buffer.concat([packed, packed.subarray(0, 40)]), /the zstd data are cut off/);
    await fails(Buffer.concat([packed, Buffer.from('and more')]), /the zstd data are damaged/);
    const damaged = readFileSync(join(golden, 'ratings.csv.zst'));
    damaged[damaged.length - 1] ^= 255;
    await fails(damaged, /the zstd data are damaged: .*checksum/);
    expect(zstdDecompressSync(packed).equals(ratings)).toBe(true);
  });
});

test('the first bytes tell the compression', async () => {
  expect((await unpackBytes(gzipSync(ratings))).equals(ratings)).toBe(true);
  expect((await unpackBytes(ratings)).equals(ratings)).toBe(true);
  expect((await unpackBytes(Buffer.from('a'))).toString()).toBe('a');
  expect(compressionOf('a/ratings.csv.ZST')).toEqual({ compression: 'zstd', bare: 'a/ratings.csv' });
  expect(compressionOf('ratings.csv')).toEqual({ compression: 'none', bare: 'ratings.csv' });
});
