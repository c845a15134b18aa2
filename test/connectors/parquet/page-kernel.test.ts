import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { describe, expect, test } from 'vitest';
import { allPresent, unpackSnappy } from '../../../connectors/parquet/pages/column-pages.ts';
import { PageKernel } from '../../../connectors/parquet/pages/page-kernel.ts';
import { random } from './parquet-testing.ts';

/** A page of runs of random lengths and kinds, and the indices in it. */
function randomRuns(
  width: number,
  size: number,
  next: (below: number) => number,
): { readonly bytes: Uint8Array; readonly indices: number[] } {
  const bytes: number[] = [];
  const indices: number[] = [];
  const head = (value: number) => {
    for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
    bytes.push(value);
  };
  for (let run = 0; run < 40; run++) {
    const count = 1 + next(run % 5 === 0 ? 600 : 12);
    if (next(2) === 0) {
      const index = next(size);
      head(count << 1);
      for (let i = 0; i < (width + 7) >> 3; i++) bytes.push((index / 2 ** (8 * i)) & 255);
      indices.push(...Array<number>(count).fill(index));
      continue;
    }
    head((count << 1) | 1);
    const packed = new Uint8Array(count * width);
    for (let i = 0; i < 8 * count; i++) {
      const index = next(size);
      for (let bit = 0; bit < width; bit++)
        packed[(i * width + bit) >> 3] |= (Math.floor(index / 2 ** bit) & 1) << ((i * width + bit) & 7);
      indices.push(index);
    }
    bytes.push(...packed);
  }
  return { bytes: Uint8Array.from(bytes), indices };
}

describe('the kernel', () => {
  test.each([0, 1, 3, 8, 13, 20])(
    'gives the values of indices of %i bits, in pieces of random sizes',
    (width) => {
      const kernel = PageKernel.take();
      const next = random(width);
      for (const bytesOfValue of [4, 8] as const) {
        const size = Math.max(1, 2 ** width - next(2 ** Math.max(0, width - 1)));
        const { bytes, indices } = randomRuns(width, size, next);
        const [state, page, dictionary, out] = [
          24,
          bytes.length,
          size * bytesOfValue,
          indices.length * bytesOfValue,
        ].map((length) => kernel.reserve(length));
        const valueOf = (index: number) => (index * 2654435761) % 2 ** 32;
        kernel.bytes.set(bytes, page);
        const values = new DataView(kernel.buffer, dictionary);
        for (let index = 0; index < size; index++)
          values.setUint32(index * bytesOfValue, valueOf(index), true);
        new Uint32Array(kernel.buffer, state, 6).set([page, page + bytes.length, width, 0, 0, 0]);
        const readRuns = bytesOfValue === 4 ? kernel.functions.readRuns32 : kernel.functions.readRuns64;
        for (let done = 0; done < indices.length;) {
          const some = Math.min(indices.length - done, 1 + next(700));
          expect(readRuns(state, some, dictionary, size, out + done * bytesOfValue)).toBe(1);
          done += some;
        }
        const given = new DataView(kernel.buffer, out);
        expect(indices.map((_, i) => given.getUint32(i * bytesOfValue, true))).toEqual(indices.map(valueOf));
        expect(readRuns(state, 1, dictionary, size, out), 'behind the end of the page').toBe(0);
        if (width === 0) continue;
        new Uint32Array(kernel.buffer, state, 6).set([page, page + bytes.length, width, 0, 0, 0]);
        expect(
          readRuns(state, indices.length, dictionary, Math.max(...indices), out),
          'an index behind the dictionary',
        ).toBe(0);
        kernel.clear();
      }
      kernel.giveBack();
    },
  );

  test('unpacks Snappy as another library does, and refuses what is cut off or damaged, or stays inside its memory', () => {
    const kernel = PageKernel.take();
    const unpack = unpackSnappy(kernel);
    const next = random(5);
    for (let block = 0; block < 60; block++) {
      // Literals of 1 to 100 bytes, and copies of both common kinds from anywhere before, overlaps among
      // them.
      const bytes: number[] = [];
      let size = 0;
      for (let element = 0; element < 30; element++) {
        const count = 1 + next(60);
        const kind = size === 0 ? 0 : next(3);
        if (kind === 0) {
          bytes.push((count - 1) << 2, ...Array.from({ length: count }, () => next(256)));
          size += count;
        } else if (kind === 1) {
          const offset = 1 + next(Math.min(size, 2047));
          bytes.push(((next(8) << 2) & 28) | 1 | ((offset >> 8) << 5), offset & 255);
          size += (((bytes.at(-2) as number) >> 2) % 8) + 4;
        } else {
          const offset = 1 + next(size);
          bytes.push(((count - 1) << 2) | 2, offset & 255, offset >> 8);
          size += count;
        }
      }
      const packed = Uint8Array.from([(size & 127) | 128, (size >> 7) & 127, ...bytes]);
      const expected = new Uint8Array(size);
      snappyUncompress(packed, expected);
      expect(unpack(packed, size)).toEqual(expected);
      expect(() => unpack(packed.subarray(0, packed.length - 1), size)).toThrow();
      expect(() => unpack(packed, size - 1)).toThrow();
      packed[next(packed.length)] ^= 1 << next(8);
      const damaged = (() => {
        try {
          return unpack(packed, size).length;
        } catch {
          return size;
        }
      })();
      expect(damaged).toBe(size);
    }
    kernel.giveBack();
  });

  test('levels: all values are there, or not', () => {
    expect(allPresent(Uint8Array.of(200, 1, 1), 100)).toBe(true);
    expect(allPresent(Uint8Array.of(200, 1, 0), 100)).toBe(false);
    expect(allPresent(Uint8Array.of(198, 1, 1), 100)).toBe(false);
    expect(allPresent(Uint8Array.of(3, 255, 4, 1), 10)).toBe(true);
    expect(allPresent(Uint8Array.of(5, 255, 3), 10)).toBe(true);
    expect(allPresent(Uint8Array.of(5, 255, 1), 10)).toBe(false);
    expect(allPresent(Uint8Array.of(5, 255), 10)).toBe(false);
    expect(allPresent(Uint8Array.of(128, 128, 128, 128, 128, 128), 10)).toBe(false);
    expect(allPresent(new Uint8Array(0), 1)).toBe(false);
  });
});
