import { makeVector, Table } from 'apache-arrow';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decodeFooter, FooterProblem, readFooter } from '../../../connectors/parquet/footer.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { context, goldenFiles, goldenFolder, random, streamOf } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

/** The end of a file: the struct, its length, "PAR1". */
function tailOf(struct: readonly number[] | Uint8Array): Uint8Array {
  const tail = new Uint8Array(struct.length + 8);
  tail.set(struct);
  new DataView(tail.buffer).setUint32(struct.length, struct.length, true);
  tail.set(Buffer.from('PAR1'), struct.length + 4);
  return tail;
}

function goldenTail(name: string): { tail: Uint8Array; fileBytes: number } {
  const bytes = readFileSync(join(goldenFolder, name));
  return {
    tail: new Uint8Array(bytes.subarray(-8 - bytes.readUInt32LE(bytes.length - 8))),
    fileBytes: bytes.length,
  };
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}

const binary = (text: string) => [text.length, ...Buffer.from(text)];
const [i32Field1, i64Field1, listField1] = [0x15, 0x16, 0x19];

/**
 * A footer of one int32 column "a" and one row group without rows; `chunk` has the fields of the column
 * chunk.
 */
function footerWith(chunk: readonly number[], columns = 1): number[] {
  const root = [0x48, ...binary('root'), i32Field1, 2, 0];
  const column = [i32Field1, 2, 0x25, 0, 0x18, ...binary('a'), 0];
  const group = [
    listField1,
    (columns << 4) | 12,
    ...Array.from({ length: columns }, () => [...chunk, 0]).flat(),
    i64Field1,
    0,
    i64Field1,
    0,
    0,
  ];
  return [i32Field1, 2, listField1, 0x2c, ...root, ...column, i64Field1, 0, listField1, 0x1c, ...group, 0];
}

/** ColumnMetaData of an int32 column of `bytes`, 63 at most, at `at`. */
function metadata(name: string, type = 1, { at = 4, bytes = 0 } = {}): number[] {
  return [
    0x3c,
    i32Field1,
    type * 2,
    listField1,
    0x15,
    0,
    listField1,
    0x18,
    ...binary(name),
    i32Field1,
    0,
    i64Field1,
    0,
    i64Field1,
    0,
    i64Field1,
    2 * bytes,
    0x26,
    2 * at,
    0,
  ];
}

test('what a footer says', () => {
  const footer = decodeFooter(tailOf(footerWith(metadata('a'))), 100);
  expect(footer.schema).toMatchObject([
    { name: 'a', physicalType: 'int32', repetition: 'required', children: 0 },
  ]);
  expect(footer.rowGroups).toMatchObject([
    {
      rows: 0,
      firstRow: 0,
      columns: [{ column: 'a', codec: 'uncompressed', encodings: ['plain'], start: 4, bytes: 0 }],
    },
  ]);
});

test('a column without pages has no offset, as pyarrow writes one without rows and dictionary', () => {
  expect(decodeFooter(tailOf(footerWith(metadata('a', 1, { at: 0 }))), 100).rowGroups).toMatchObject([
    { rows: 0, columns: [{ start: 4, bytes: 0 }] },
  ]);
});

test.each([
  [
    'bytes without an offset',
    footerWith(metadata('a', 1, { at: 0, bytes: 9 })),
    /"a" of row group 0 has 9 bytes and no offset/,
  ],
  ['an encrypted column in a plain footer', footerWith([0x8c, 0x1c, 0, 0]), /encrypted columns/],
  [
    'a column in another file',
    footerWith([0x18, ...binary('b'), ...metadata('a').with(0, 0x2c)]),
    /in another file/,
  ],
  ['a column chunk without metadata', footerWith([]), /no metadata for a column of row group 0/],
  [
    'two names for a column',
    footerWith(metadata('c')),
    /a column is called "a" in the schema and "c" in row group 0/,
  ],
  [
    'two types for a column',
    footerWith(metadata('a', 2)),
    /"a" is int32 in the schema and int64 in row group 0/,
  ],
  [
    'more columns than the schema has',
    footerWith(metadata('a'), 2),
    /row group 0 has 2 columns, and the schema 1/,
  ],
  ['nothing', [0], /footer is damaged/],
  ['not even nothing', [], /footer is damaged: need 1 bytes, have 0/],
])('%s is refused', (_, struct, message) => {
  expect(() => decodeFooter(tailOf(struct), 100)).toThrow(FooterProblem);
  expect(() => decodeFooter(tailOf(struct), 100)).toThrow(message);
});

test('footers that ask for the impossible are refused before anything is made for them', () => {
  const lists = Array.from({ length: 12 }, () => [0xf9, ...varint(2 ** 25 - 1)]).flat();
  const endless = new Uint8Array(4_000_000).fill(0xff);
  endless[0] = i64Field1;
  const before = process.memoryUsage().rss;
  expect(() => decodeFooter(tailOf([listField1, ...lists, 0]), 2 ** 30)).toThrow(/need 33554431 bytes, have/);
  expect(() => decodeFooter(tailOf(endless), 2 ** 30)).toThrow(/more than 64 bits/);
  expect(() => decodeFooter(tailOf(new Uint8Array(1_000_000).fill(0x1c)), 2 ** 30)).toThrow(
    /nested too deeply/,
  );
  expect(() => decodeFooter(tailOf(new Uint8Array(1_000_000).fill(0x19)), 2 ** 30)).toThrow(
    /nested too deeply/,
  );
  expect(() => decodeFooter(tailOf([0x18, ...varint(2 ** 31 - 1), 0]), 2 ** 30)).toThrow(
    /need 2147483647 bytes/,
  );
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
});

test('bytes changed at random are a footer or a FooterProblem', () => {
  const next = random(5);
  let refused = 0;
  for (const name of goldenFiles) {
    const { tail, fileBytes } = goldenTail(name);
    for (let round = 0; round < 30; round++) {
      const damaged = Uint8Array.from(tail);
      const from = next(damaged.length - 8);
      // The damage is a bit, a byte, or a run of one value, as flash memory and failing disks leave it.
      if (round % 3 === 0) damaged[from] ^= 1 << next(8);
      else if (round % 3 === 1) damaged[from] = next(256);
      else damaged.fill(next(2) * 255, from, Math.min(damaged.length - 8, from + 1 + next(64)));
      try {
        decodeFooter(damaged, fileBytes);
      } catch (error) {
        if (!(error instanceof FooterProblem)) throw error;
        refused++;
      }
    }
  }
  expect(refused).toBeGreaterThan(3 * goldenFiles.length);
});

test('the footer of the same bytes is decoded once in a thread', async () => {
  const file = join(folder, 'rows.parquet');
  const table = new Table({ x: makeVector(Int32Array.of(1, 2)) });
  const write = (rows: Table) =>
    new ParquetSink(file, { overwrite: true }).consume(streamOf(rows.schema, rows.batches), context());
  await write(table);
  const first = await readFooter(file);
  expect(await readFooter(file)).toBe(first);
  await write(table.slice(0, 1));
  expect((await readFooter(file)).rows).toBe(1);
});
