import { Field, Float64, Utf8 } from 'apache-arrow';
import { expect, test } from 'vitest';
import type { ColumnChunkInfo } from '../../../connectors/parquet/footer.ts';
import { StreamRows } from '../../../connectors/parquet/parquet-wasm/wasm-decoder.ts';

const MiB = 2 ** 20;

function rowGroup(rows: number, ...texts: readonly Partial<ColumnChunkInfo>[]) {
  const columns = texts.map((chunk, i) => ({
    column: `t${i}`,
    codec: 'zstd',
    encodings: ['rle_dictionary'],
    start: 4,
    bytes: 100,
    unpackedBytes: MiB,
    type: 'double',
    statistics: {},
    ...chunk,
  }));
  return { rows, firstRow: 0, columns };
}

function fields(numbers: number, ...texts: readonly string[]) {
  return [
    ...Array.from({ length: numbers }, (_, i) => new Field(`n${i}`, new Float64())),
    ...texts.map((name) => new Field(name, new Utf8())),
  ];
}

test('numbers: row groups of the usual sizes at once, larger ones in parts', () => {
  const sizes = new StreamRows(rowGroup(10 ** 8), fields(3), 131_072);
  expect(sizes.limit).toBeGreaterThan(8 * 10 ** 6);
  expect(sizes.limit * 24).toBeLessThanOrEqual(256 * MiB);
  expect(sizes.batch).toBe(131_072);
  expect(sizes.shrink()).toBe(false);
});

test('text whose length the footer gives', () => {
  const ids = new StreamRows(rowGroup(10 ** 6, { textBytes: 36 * 10 ** 6 }), fields(1, 't0'), 131_072);
  expect(ids.limit).toBeGreaterThan(10 ** 6);
  expect(ids.batch).toBe(131_072);
  const bomb = new StreamRows(
    rowGroup(10 ** 5, { textBytes: 65_536 * 10 ** 5, unpackedBytes: 65_536 }),
    fields(2, 't0'),
    131_072,
  );
  expect(bomb.limit * 65_536).toBeLessThanOrEqual(96 * MiB);
  expect(bomb.batch * 65_536).toBeLessThanOrEqual(32 * MiB);
});

test('text of unknown length: a first stream that fits if every text is the longest, then by what came', () => {
  const sizes = new StreamRows(rowGroup(10 ** 6, { unpackedBytes: 4 * MiB }), fields(2, 't0'), 131_072);
  expect(sizes.limit).toBe(8);
  sizes.learn(64 * 40, 64);
  expect(sizes.limit).toBeGreaterThan(10 ** 6);
  expect(sizes.batch).toBe(131_072);
  // Without a dictionary the text is as long as its pages.
  expect(
    new StreamRows(
      rowGroup(10 ** 6, { unpackedBytes: 4 * MiB, encodings: ['plain'] }),
      fields(2, 't0'),
      131_072,
    ).limit,
  ).toBeGreaterThan(10 ** 6);
  expect(
    new StreamRows(
      rowGroup(10 ** 4, { unpackedBytes: 4 * MiB, encodings: ['delta_byte_array'] }),
      fields(2, 't0'),
      131_072,
    ).limit,
  ).toBe(8);
});

test('too much for the decoder: fewer rows, at last one, then an error that says so', () => {
  const sizes = new StreamRows(
    rowGroup(100_000, { textBytes: 10 ** 6, unpackedBytes: 2 ** 30 }),
    fields(0, 't0'),
    131_072,
  );
  const limits = [sizes.limit];
  while (sizes.shrink()) limits.push(sizes.limit);
  expect(limits.every((limit, i) => i === 0 || limit <= Math.max(1, limits[i - 1] / 64))).toBe(true);
  expect(limits.at(-1)).toBe(1);
  expect(sizes.beyond('f.parquet', 2)).toMatchObject({
    code: 'CAPACITY',
    exitCode: 4,
    message: expect.stringMatching(/a row's text does not fit.*1\.0 GiB.*f\.parquet, row group 2/) as string,
  });
  expect(new StreamRows(rowGroup(10, {}), fields(0, 't0'), 131_072).beyond('f.parquet', 0)).toBeUndefined();
});
