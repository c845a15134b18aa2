/** Checksums of pages: written in each of them, and compared by each reader. */
import {
  Field,
  Float32,
  Int32,
  List,
  Table,
  tableFromArrays,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { crc32 } from 'node:zlib';
import { openRandomAccess } from '../../../connectors/files/random-access.ts';
import type { ParquetBackendName } from '../../../connectors/parquet/backend.ts';
import { readFooter } from '../../../connectors/parquet/footer.ts';
import { HeaderReader } from '../../../connectors/parquet/pages/page-header.ts';
import { PageKernel } from '../../../connectors/parquet/pages/page-kernel.ts';
import { PageSums } from '../../../connectors/parquet/pages/page-sums.ts';
import { readRowGroups, type RowGroupRequest } from '../../../connectors/parquet/parquet-source.ts';
import { WasmInstance } from '../../../connectors/parquet/parquet-wasm/wasm-instance.ts';
import { FileAssembly } from '../../../connectors/parquet/write/file-assembly.ts';
import { DataError } from '../../../engine/errors.ts';
import { byPairs, everyNth } from '../../support/deep.ts';
import { duckRows, outcome } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const damaged = join(folder, 'damaged.parquet');
const ROWS = 3000;

const rows = Array.from({ length: ROWS }, (_, i) => i);
const tables = {
  numbers: tableFromArrays({
    user: Int32Array.from(rows, (i) => i % 97),
    item: Int32Array.from(rows),
    rating: Float32Array.from(rows, (i) => (i % 10) / 2),
  }),
  texts: new Table({
    word: vectorFromArray(rows.map((i) => `word ${i % 30}`)),
    some: vectorFromArray(
      rows.map((i) => (i % 3 === 0 ? null : i)),
      new Int32(),
    ),
    list: vectorFromArray(
      rows.map((i) => [i / 2, i / 4]),
      new List(new Field('element', new Float32(), true)),
    ),
  }),
};

interface Kind {
  readonly table: keyof typeof tables;
  readonly version: 1 | 2;
  /** Number of the codec (parquet.thrift). */
  readonly codec: number;
  readonly dictionary: boolean;
}

const kinds: readonly Kind[] = byPairs(
  (['numbers', 'texts'] as const).flatMap((table) =>
    ([1, 2] as const).flatMap((version) =>
      [0, 1, 5].flatMap((codec) =>
        [true, false].map((dictionary) => ({ table, version, codec, dictionary })),
      ),
    ),
  ),
  (kind) => ({ ...kind }),
);

/** A file of two row groups with pages of few rows. */
function written({ table, version, codec, dictionary }: Kind): Buffer {
  using instance = WasmInstance.take();
  const { wasm } = instance;
  const properties = new wasm.WriterPropertiesBuilder()
    .setWriterVersion(version - 1)
    .setCompression(codec)
    .setDictionaryEnabled(dictionary)
    .setDataPageSizeLimit(1024)
    .setWriteBatchSize(256)
    .setMaxRowGroupSize(ROWS);
  const stream = tableToIPC(tables[table], 'stream');
  const group = wasm.writeParquet(wasm.Table.fromIPCStream(stream), properties.build());
  const assembly = new FileAssembly();
  return Buffer.concat([...assembly.add(group), ...assembly.add(group), ...assembly.end()]);
}

interface Page {
  readonly rowGroup: number;
  readonly column: string;
  readonly header: number;
  readonly from: number;
  readonly bytes: number;
  readonly crc: number | undefined;
}

async function pagesOf(file: string): Promise<Page[]> {
  const all = readFileSync(file);
  const headers = new HeaderReader(PageKernel.take());
  const pages: Page[] = [];
  for (const [rowGroup, { columns }] of (await readFooter(file)).rowGroups.entries())
    for (const { column, start, bytes } of columns)
      for (let at = start; at < start + bytes;) {
        const size = headers.size(all.subarray(at, start + bytes));
        if (size === undefined) throw new Error(`no header at ${at}`);
        const from = at + size.bytes;
        pages.push({ rowGroup, column, header: at, from, bytes: size.packed, crc: size.crc });
        at = from + size.packed;
      }
  return pages;
}

async function countRows(request: RowGroupRequest): Promise<number> {
  let count = 0;
  for await (const batch of readRowGroups(request)) count += batch.numRows;
  return count;
}

/** Flips a bit in each page, and reads the file by the backend. */
async function expectFound(file: string, backend: ParquetBackendName): Promise<void> {
  const all = readFileSync(file);
  for (const { rowGroup, column, header, from, bytes } of everyNth(await pagesOf(file), 4, 1)) {
    if (bytes === 0) continue;
    const changed = Buffer.from(all);
    changed[from + (bytes >> 1)] ^= 1 << (header % 8);
    writeFileSync(damaged, changed);
    const error = await outcome(() => countRows({ file: damaged, backend, columns: [column.split('.')[0]] }));
    expect(error).toBeInstanceOf(DataError);
    expect(error).toMatchObject({ exitCode: 3, details: { file: damaged, rowGroup, column } });
    expect(String(error)).toContain(`the page at byte ${header} is damaged`);
  }
}

test.each(kinds)(
  'pages of $table, version $version, codec $codec, dictionary $dictionary have checksums',
  async (kind) => {
    const file = join(folder, 'whole.parquet');
    writeFileSync(file, written(kind));
    const all = readFileSync(file);
    const pages = await pagesOf(file);
    expect(pages.length).toBeGreaterThan(6);
    for (const { from, bytes, crc } of pages) expect(crc).toBe(crc32(all.subarray(from, from + bytes)));
    expect(await countRows({ file })).toBe(2 * ROWS);
    expect(await duckRows(`SELECT count(*) FROM '${file}'`)).toEqual([[BigInt(2 * ROWS)]]);
    await expectFound(file, 'parquet-wasm');
  },
);

test.each([0, 1])('parquetjs-lite compares them too (codec %i)', async (codec) => {
  const file = join(folder, 'lite.parquet');
  writeFileSync(file, written({ table: 'numbers', version: 1, codec, dictionary: false }));
  expect(await countRows({ file, backend: 'parquetjs-lite' })).toBe(2 * ROWS);
  await expectFound(file, 'parquetjs-lite');
});

// Written by pyarrow 26.0.1: write_table(..., compression='snappy', write_page_checksum=True), with
// data_page_version 1.0 and 2.0.
test.each([1, 2])('checksums of another writer are compared (version %i)', async (version) => {
  const file = join(import.meta.dirname, `../../golden/page-sums/pyarrow-${version}.parquet`);
  expect((await pagesOf(file)).every(({ crc }) => crc !== undefined)).toBe(true);
  expect(await countRows({ file })).toBe(600);
  await expectFound(file, 'parquet-wasm');
});

test('bytes that begin inside a column are compared where a page begins there, and only then', async () => {
  const file = join(folder, 'inside.parquet');
  writeFileSync(file, written({ table: 'texts', version: 1, codec: 0, dictionary: false }));
  const [, second, third] = await pagesOf(file);
  const all = readFileSync(file);
  all[third.from] ^= 1;
  writeFileSync(file, all);
  const handle = await openRandomAccess(file);
  const sums = new PageSums(file, handle, (await readFooter(file)).rowGroups);
  const check = (from: number, to: number) => outcome(() => sums.check(all.subarray(from, to), from));
  expect(await check(second.header, third.from)).toBeUndefined();
  expect(await check(second.header, third.from + third.bytes - 1)).toBeUndefined();
  expect(await check(second.header, third.from + third.bytes)).toBeInstanceOf(DataError);
  expect(await check(third.header, third.from + third.bytes)).toBeInstanceOf(DataError);
  // Bytes that happen to look like a header, with a checksum that fits no page.
  const lookalike = Buffer.from(all.subarray(third.header, third.from + third.bytes));
  const from = second.from + 3;
  expect(await outcome(() => sums.check(lookalike, from))).toBeUndefined();
  await handle.close();
});
