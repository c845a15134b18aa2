import { DataType, type Schema } from 'apache-arrow';
import { idTooLong, LONGEST_ID } from '../../../engine/keys/arrow-keys.ts';
import { readExactly } from '../footer-file.ts';
import type { ColumnChunkInfo } from '../footer.ts';
import { ColumnPages, isReadCodec } from './column-pages.ts';
import { FileWindow } from './file-window.ts';
import { HEADER_BYTES, HeaderReader } from './page-header.ts';
import { PageKernel } from './page-kernel.ts';
import { PageProblem } from './page-problem.ts';
import type { PageFile } from './read-pages.ts';

/**
 * Only columns with a page of more bytes, uncompressed, are searched: the copies that the decoder makes of
 * smaller pages take little memory.
 */
export const LARGE_PAGE = 1 << 26;
/** Rows whose lengths are in memory at once. */
const ROWS = 1 << 16;

/**
 * Throws CapacityError for a text id that is too long, with its row, before the decoder has several copies of
 * it in memory. Columns whose pages cannot be read here are left to the decoder.
 */
export async function requireShortIdsIn(
  opened: PageFile,
  rowGroup: number,
  ids: Schema,
  largePage = LARGE_PAGE,
): Promise<void> {
  for (const { name, type, nullable } of ids.fields) {
    const chunk = opened.footer.rowGroups[rowGroup].columns.find(({ column }) => column === name);
    if (chunk === undefined || !DataType.isUtf8(type) || !isReadCodec(chunk.codec)) continue;
    if (chunk.unpackedBytes <= largePage || !(await hasLargePage(opened, chunk, largePage))) continue;
    await requireShortTexts(opened, rowGroup, chunk, nullable);
  }
}

/** True if the headers, as far as they can be read, show an uncompressed page of more bytes. */
async function hasLargePage(
  { file, handle }: PageFile,
  { start, bytes }: ColumnChunkInfo,
  largePage: number,
): Promise<boolean> {
  const kernel = PageKernel.take();
  try {
    const headers = new HeaderReader(kernel);
    const end = start + bytes;
    for (let at = start; at < end;) {
      const head = await readExactly(handle, file, at, Math.min(HEADER_BYTES, end - at));
      const page = headers.read(head);
      if (page.unpacked > largePage) return true;
      at += page.bytes + page.packed;
    }
    return false;
  } catch {
    return false;
  } finally {
    kernel.giveBack();
  }
}

/** Reads the lengths of a column's texts in place of the texts. */
async function requireShortTexts(
  { file, handle, footer, counter }: PageFile,
  rowGroup: number,
  chunk: ColumnChunkInfo,
  nullable: boolean,
): Promise<void> {
  const { rows, firstRow } = footer.rowGroups[rowGroup];
  const { column } = chunk;
  const kernel = PageKernel.take();
  const window = new FileWindow(handle, file, counter, chunk);
  try {
    const out = kernel.reserve(Uint32Array.BYTES_PER_ELEMENT * ROWS);
    const pages = new ColumnPages(window, { ...chunk, file, rowGroup }, 4, nullable, kernel, textLengths);
    for (let row = 0; row < rows; row += ROWS) {
      const some = Math.min(ROWS, rows - row);
      await pages.fill(out, some);
      const lengths = new Uint32Array(kernel.buffer, out, some);
      const long = lengths.findIndex((bytes) => bytes > LONGEST_ID);
      if (long >= 0) throw idTooLong(lengths[long], { file, rowGroup, row: firstRow + row + long, column });
    }
  } catch (error) {
    if (!(error instanceof PageProblem)) throw error;
  } finally {
    window.giveBack();
    kernel.giveBack();
  }
}

/** The lengths of plainly stored texts, as uint32: each text is stored after its length. */
export function textLengths(page: Uint8Array, values: number): Uint8Array {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const lengths = new Uint32Array(Math.min(values, page.length >> 2));
  let at = 0;
  for (let i = 0; i < lengths.length && at + 4 <= page.length; i++) {
    lengths[i] = view.getUint32(at, true);
    at += 4 + lengths[i];
  }
  if (at !== page.length) throw new Error(`a page of texts of ${page.length} bytes whose texts have ${at}`);
  return new Uint8Array(lengths.buffer);
}
