import { readColumnIndex, readOffsetIndex } from 'hyparquet/src/indexes.js';
import { readExactly } from '../footer-file.ts';
import type { ColumnChunkInfo, ColumnStatistics } from '../footer.ts';
import type { RandomAccess } from '../random-access.ts';
import { checkThriftShape } from '../thrift-shape.ts';
import { type PageIndexPlace, storedNumber } from './page-index-place.ts';

/** A page of values: bytes from the column's start to its header, and its rows in the row group. */
export interface IndexedPage {
  readonly at: number;
  readonly firstRow: number;
  readonly rows: number;
}

/** An open file. */
export interface OpenFile {
  readonly file: string;
  readonly handle: RandomAccess;
}

/** Pages of a column chunk of `rows` rows. Throws an Error for an inconsistent index. */
export async function readIndexedPages(
  file: OpenFile,
  { pageIndex, start, bytes }: ColumnChunkInfo,
  rows: number,
): Promise<IndexedPage[]> {
  if (pageIndex === undefined) throw new Error('the column has no page index');
  const { page_locations: places } = readOffsetIndex(await thriftReader(file, pageIndex.pages));
  const pages = places.map(({ offset, first_row_index }, i) => {
    const firstRow = Number(first_row_index);
    return {
      at: Number(offset) - start,
      firstRow,
      rows: Number(places[i + 1]?.first_row_index ?? rows) - firstRow,
    };
  });
  const isSound = pages.every(({ at, rows: own }) => at >= 0 && at < bytes && own > 0);
  if (!isSound || pages[0]?.firstRow !== 0) throw new Error('the page index is damaged');
  return pages;
}

/** Statistics of the pages of a column chunk of signed integers or floats. */
export async function readPageStatistics(
  file: OpenFile,
  { pageIndex, type }: ColumnChunkInfo,
  pages: readonly IndexedPage[],
): Promise<ColumnStatistics[]> {
  if (pageIndex?.values === undefined) throw new Error('the column has no index of values');
  const reader = await thriftReader(file, pageIndex.values);
  // Without a logical type, the library returns values as they are stored.
  const element = { name: '', type: type?.toUpperCase() as 'INT32' };
  const { null_pages, min_values, max_values, null_counts } = readColumnIndex(reader, element);
  if ([null_pages, min_values, max_values].some(({ length }) => length !== pages.length))
    throw new Error('the page index is damaged');
  return pages.map(({ rows }, i) => {
    if (null_pages[i]) return { nulls: rows };
    const nulls = null_counts?.[i];
    return {
      min: storedNumber(min_values[i]),
      max: storedNumber(max_values[i]),
      ...(nulls !== undefined && { nulls: Number(nulls) }),
    };
  });
}

async function thriftReader({ file, handle }: OpenFile, { at, bytes: length }: PageIndexPlace['pages']) {
  const bytes = await readExactly(handle, file, at, length);
  checkThriftShape(bytes);
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
}
