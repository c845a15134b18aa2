import { openSync, readSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { closeRead } from '../../../engine/regular-file.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { ColumnChunkInfo, RowGroupInfo } from '../footer.ts';
import { HEADER_BYTES, HeaderReader } from './page-header.ts';
import { PageKernel } from './page-kernel.ts';

/**
 * A range of rows in a row group, as plain JSON, with the page of each column that contains its first row.
 */
export type RowRange = JsonObject & {
  /** First row, relative to the row group. */
  readonly from: number;
  /** Number of rows. */
  readonly rows: number;
  /**
   * For each column, the page that contains the first row: bytes from the column's start to the page's
   * header, and the number of rows of the page before that row. Empty for a range that starts with the row
   * group.
   */
  readonly starts: { readonly [column: string]: { readonly at: number; readonly skip: number } };
};

/** Most rows of a range. */
export const RANGE_ROWS = 1 << 19;
/** Number of headers to read before other work gets a turn. */
const HEADERS_AT_ONCE = 500;

interface Page {
  readonly at: number;
  readonly firstRow: number;
}

/**
 * Cuts a large row group, so that threads share it and no thread holds all of it. Reads only the pages'
 * headers. Undefined for a small row group, and if a header is not as expected; then reading the
 * pages in order reports the error.
 */
export async function cutRowGroup(
  file: string,
  { rows, columns }: RowGroupInfo,
  names: readonly string[],
): Promise<RowRange[] | undefined> {
  if (rows <= 2 * RANGE_ROWS || names.length === 0) return undefined;
  const handle = openSync(file, 'r');
  const kernel = PageKernel.take();
  try {
    const headers = new HeaderReader(kernel);
    const pages = new Map<string, readonly Page[]>();
    for (const name of names)
      pages.set(
        name,
        await pagesOf(
          handle,
          headers,
          columns.find(({ column }) => column === name) as ColumnChunkInfo,
          rows,
        ),
      );
    // Ranges are cut between pages of the column with the fewest, largest pages, so that each of these pages
    // is decompressed only once, unless it has more rows than a range.
    const [fewest] = [...pages.values()].sort((left, right) => left.length - right.length);
    return rangesOf(
      fewest.map(({ firstRow }) => firstRow),
      rows,
    ).map((range) => ({
      ...range,
      starts: Object.fromEntries([...pages].map(([name, all]) => [name, startOf(all, range.from)])),
    }));
  } catch {
    return undefined;
  } finally {
    kernel.giveBack();
    closeRead(handle);
  }
}

async function pagesOf(
  handle: number,
  reader: HeaderReader,
  { start, bytes }: ColumnChunkInfo,
  rows: number,
): Promise<Page[]> {
  const pages: Page[] = [];
  const buffer = new Uint8Array(HEADER_BYTES);
  let firstRow = 0;
  for (let [at, headers] = [0, 1]; at < bytes && firstRow < rows; headers++) {
    const read = readSync(handle, buffer, 0, Math.min(HEADER_BYTES, bytes - at), start + at);
    const header = reader.read(buffer.subarray(0, read));
    if (header.kind === 'values' && header.values > 0) {
      pages.push({ at, firstRow });
      firstRow += header.values;
    }
    at += header.bytes + header.packed;
    if (headers % HEADERS_AT_ONCE === 0) await setImmediate();
  }
  if (firstRow !== rows) throw new Error(`${firstRow} values in ${rows} rows`);
  return pages;
}

/** Ranges between some of the pages' first rows, which ascend from 0, and within pages of more rows than a range. */
function rangesOf(
  pages: readonly number[],
  rows: number,
): { readonly from: number; readonly rows: number }[] {
  const cuts = pages.flatMap((first, page) => {
    const own = (pages[page + 1] ?? rows) - first;
    const parts = Math.ceil(own / RANGE_ROWS);
    return Array.from({ length: parts }, (_, part) => first + Math.floor((part * own) / parts));
  });
  const chosen = [0];
  for (const [index, cut] of cuts.entries()) {
    const next = cuts[index + 1] ?? rows;
    if (cut > (chosen.at(-1) as number) && next - (chosen.at(-1) as number) > RANGE_ROWS) chosen.push(cut);
  }
  return chosen.map((from, index) => ({ from, rows: (chosen[index + 1] ?? rows) - from }));
}

/** The page that contains a row, and the rows of the page before it. */
export function startOf(pages: readonly Page[], row: number): { readonly at: number; readonly skip: number } {
  let [low, high] = [0, pages.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (pages[middle].firstRow <= row) low = middle;
    else high = middle;
  }
  return { at: pages[low].at, skip: row - pages[low].firstRow };
}
