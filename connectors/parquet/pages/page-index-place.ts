import type { ColumnChunk } from 'hyparquet';

/** The page index of one column chunk: its places in the file. */
export interface PageIndexPlace {
  /** The column index (least and greatest values); absent if the stored order is not numeric order. */
  readonly values?: PageIndexPlace['pages'];
  /** The offset index: places and first rows. */
  readonly pages: { readonly at: number; readonly bytes: number };
}

/** The largest index that is read; a larger one would cost more than it saves. */
const MOST_BYTES = 16 << 20;

/** The places of a page index by the footer; undefined without one that can be read. */
export function pageIndexPlace(
  chunk: ColumnChunk,
  hasOrder: boolean,
  fileBytes: number,
): PageIndexPlace | undefined {
  const span = (offset: bigint | undefined, length: number | undefined) => {
    const [at, bytes] = [Number(offset ?? 0), length ?? 0];
    return at > 0 && bytes > 0 && bytes <= MOST_BYTES && at + bytes <= fileBytes ? { at, bytes } : undefined;
  };
  const pages = span(chunk.offset_index_offset, chunk.offset_index_length);
  const values = hasOrder ? span(chunk.column_index_offset, chunk.column_index_length) : undefined;
  return pages && { pages, ...(values && { values }) };
}

/** A number of statistics; undefined for NaN, and for bytes that are no number of the column's type. */
export function storedNumber(value: unknown): number | bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined;
}
