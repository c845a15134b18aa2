import { readOffsetIndex } from 'hyparquet/src/indexes.js';
import { parquetScan } from 'hyparquet/src/scan.js';
import type { FileMetaData, ParquetScan } from 'hyparquet/src/types.js';
import type { CachedFile } from './cached-file.ts';
import {
  copyRow,
  noSingleRows,
  type PartFile,
  plainFeatures,
  type RowPlaces,
  rowsAt,
} from './feature-rows.ts';
import { readFooter, withPageSums } from './parquet-bytes.ts';
import { type RangedFile, cancelledBy, problem, type RemoteFile } from './remote-file.ts';
import { SharedValue } from './shared-request.ts';

const parsers = { stringFromBytes: (bytes: Uint8Array) => bytes };

/**
 * Opens a Parquet file with the columns id, features and perhaps scale. Throws DataError for a file of another
 * model than the one with this digest of the file.
 */
export async function openParquetPart(file: RemoteFile, width: number, digest?: string): Promise<PartFile> {
  const metadata = await readFooter(file, digest);
  const names = metadata.schema.map(({ name }) => name);
  const missing = ['id', 'features'].find((name) => !names.includes(name));
  if (missing !== undefined) throw problem(file.url, `the file has no column ${missing}`);
  const columns = ['features', ...(names.includes('scale') ? ['scale'] : [])];
  const scan = await parquetScan({ file: withPageSums(file, metadata), metadata, columns: ['id'], parsers });
  const rows = scan.ranges.reduce((sum, { rowStart, rowEnd }) => sum + rowEnd - rowStart, 0);
  const places = new SharedValue((signal) => pagePlaces(metadata, width, cancelledBy(file, signal)));
  return {
    file,
    rows,
    ids: () => Promise.all(scan.ranges.map(async (range) => checkedIds(scan, range, file.url))),
    readAll: async (target, through) => {
      const summed = withPageSums(through, metadata);
      const all = await parquetScan({ file: summed, metadata, columns, parsers });
      for (const range of all.ranges)
        await readFeatures(all, columns, range, { target, width, url: file.url });
    },
    readRows: async (rows, cached, signal) => {
      const pages = await places.get(signal);
      return pages
        ? rowsAt(pages, rows, width, cached, signal)
        : rowsOfGroups(metadata, rows, width, cached, signal);
    },
  };
}

type Range = ParquetScan['ranges'][number];

async function checkedIds(scan: ParquetScan, range: Range, url: string) {
  const ids = await scan.readColumn({ column: 'id', ...range });
  const rows = range.rowEnd - range.rowStart;
  if (ids.length !== rows) throw problem(url, `the column id has ${ids.length} rows, need ${rows}`);
  return ids;
}

async function readFeatures(
  scan: ParquetScan,
  columns: readonly string[],
  range: Range,
  { target, width, url }: { readonly target: Float32Array; readonly width: number; readonly url: string },
): Promise<void> {
  const [features, scales] = await Promise.all(
    columns.map((column) => scan.readColumn({ column, ...range })),
  );
  const rows = range.rowEnd - range.rowStart;
  if (features.length !== rows)
    throw problem(url, `the column features has ${features.length} rows, need ${rows}`);
  for (let row = 0; row < rows; row++) {
    const plain = plainFeatures(features[row], width, scales?.[row], url);
    copyRow(plain, target, (range.rowStart + row) * width, width, url);
  }
}

/**
 * The places of the rows of a file that Model.save wrote. Undefined for a file of another program, or without
 * the places of pages (offset index): such pages are decoded as a whole.
 */
async function pagePlaces(
  metadata: FileMetaData,
  width: number,
  file: RangedFile,
): Promise<readonly RowPlaces[] | undefined> {
  if (metadata.created_by !== 'factorflow version 1') return undefined;
  const places: RowPlaces[] = [];
  let start = 0;
  for (const { columns, num_rows: rows } of metadata.row_groups) {
    const chunk = columns.find(({ meta_data: own }) => own?.path_in_schema[0] === 'features');
    const [at, bytes] = [Number(chunk?.offset_index_offset ?? 0), chunk?.offset_index_length ?? 0];
    if (chunk?.meta_data?.codec !== 'UNCOMPRESSED' || at <= 0 || bytes <= 0) return undefined;
    const view = new DataView(await file.slice(at, at + bytes));
    const { page_locations: pages } = readOffsetIndex({ view, offset: 0 });
    pages.forEach(({ offset, compressed_page_size: size, first_row_index: first }, page) => {
      const next = page + 1 < pages.length ? pages[page + 1].first_row_index : rows;
      // A page ends with its values.
      const end = Number(offset) + size;
      places.push({ first: start + Number(first), at: end - 4 * width * Number(next - first) });
    });
    start += Number(rows);
  }
  return places;
}

/** Reads all pages between the first and the last row of each row group. */
async function rowsOfGroups(
  metadata: FileMetaData,
  rows: readonly number[],
  width: number,
  file: CachedFile,
  signal: AbortSignal,
): Promise<Float32Array> {
  const { url } = file;
  const scan = await parquetScan({
    file: withPageSums(cancelledBy(file, signal), metadata),
    metadata,
    columns: ['features'],
    parsers,
  });
  const values = new Float32Array(rows.length * width);
  for (const { rowStart, rowEnd } of scan.ranges) {
    const from = rows.findIndex((row) => row >= rowStart && row < rowEnd);
    const last = rows.findLastIndex((row) => row >= rowStart && row < rowEnd);
    if (from < 0) continue;
    const range = { rowStart: rows[from], rowEnd: rows[last] + 1 };
    const features = await scan.readColumn({ column: 'features', ...range });
    for (let at = from; at <= last; at++) {
      const row = features[rows[at] - range.rowStart] as ArrayLike<number> | Uint8Array | undefined;
      if (row instanceof Uint8Array) throw noSingleRows(url);
      copyRow(row, values, at * width, width, url);
    }
  }
  return values;
}
