import type { ColumnChunk } from 'hyparquet';

/** Position in the file of one column chunk's page index. */
export interface PageIndexPlace {
  /** Column index (minimum and maximum); absent if the stored order is not numeric order. */
  readonly values?: PageIndexPlace['pages'];
  /** Offset index: positions and first rows. */
  readonly pages: { readonly at: number; readonly bytes: number };
}

/** Largest index to read; reading a larger one would cost more than it saves. */
const MOST_BYTES = 16 << 20;

/** Position of a page index, from the footer; undefined if there is none or it cannot be read. */
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

/** A number from statistics; undefined for NaN, and for bytes that are not a number of the column's type. */
export function storedNumber(value: unknown): number | bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined;
}
