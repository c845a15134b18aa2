import { crc32 } from 'node:zlib';
import { DataError } from '../../../engine/errors.ts';
import { readExactly, type RandomAccess } from '../../files/random-access.ts';
import type { ColumnChunkInfo, RowGroupInfo } from '../footer.ts';
import { HeaderReader, LONG_HEADER_BYTES, type PageSize } from './page-header.ts';
import { PageKernel } from './page-kernel.ts';

/** Position of a page: its header starts at byte `at` of the file. */
export interface PagePlace {
  readonly file: string;
  readonly rowGroup: number;
  readonly column: string;
  readonly at: number;
}

/**
 * Verifies the CRC-32 that a page's header has, if its writer stored one (parquet.thrift, PageHeader.crc). It
 * is computed over the stored page: compressed, and for version 2 with the levels. Throws DataError.
 */
export function requireSum(page: Uint8Array, stored: number | undefined, place: PagePlace): void {
  if (stored === undefined) return;
  const sum = crc32(page);
  if (sum === stored) return;
  const { at, ...rest } = place;
  throw new DataError(
    `the page at byte ${at} is damaged: its bytes have the checksum ${hex(sum)}, and its header says ${hex(stored)}`,
    { phase: 'read', ...rest, advice: 'Copy or write the file again' },
  );
}

function hex(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}

interface Chunk extends ColumnChunkInfo {
  readonly rowGroup: number;
}

/**
 * Verifies page checksums of an open file, for readers that are given bytes and find the pages themselves.
 */
export class PageSums {
  readonly #file: string;
  readonly #handle: RandomAccess;
  /** Sorted by position. */
  readonly #chunks: readonly Chunk[];

  constructor(file: string, handle: RandomAccess, rowGroups: readonly RowGroupInfo[]) {
    [this.#file, this.#handle] = [file, handle];
    this.#chunks = rowGroups
      .flatMap(({ columns }, rowGroup) => columns.map((chunk) => ({ ...chunk, rowGroup })))
      .sort((left, right) => left.start - right.start);
  }

  /** Checks the pages that are completely within some bytes; the bytes start at byte `from` of the file. */
  async check(bytes: Uint8Array, from: number): Promise<void> {
    const end = from + bytes.length;
    for (let i = this.#firstAfter(from); i < this.#chunks.length && this.#chunks[i].start < end; i++) {
      const failure = this.#checkChunk(bytes, from, this.#chunks[i]);
      // Bytes that start inside a column chunk are assumed to start with a page. Since a check of that is
      // slow, it is made only after a mismatch.
      if (failure !== undefined && (await this.#isPage(this.#chunks[i], failure.at))) throw failure.error;
    }
  }

  /** The first chunk that ends after a byte. */
  #firstAfter(byte: number): number {
    let [low, high] = [0, this.#chunks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#chunks[middle].start + this.#chunks[middle].bytes > byte) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #checkChunk(
    bytes: Uint8Array,
    from: number,
    { start, bytes: length, column, rowGroup }: Chunk,
  ): { readonly at: number; readonly error: unknown } | undefined {
    const end = Math.min(from + bytes.length, start + length);
    const kernel = PageKernel.take();
    try {
      const headers = new HeaderReader(kernel);
      for (let at = Math.max(from, start); at < end;) {
        const size = headers.size(bytes.subarray(at - from, end - from));
        if (size === undefined || at + size.bytes + size.packed > end) return undefined;
        const page = bytes.subarray(at - from + size.bytes, at - from + size.bytes + size.packed);
        try {
          requireSum(page, size.crc, { file: this.#file, rowGroup, column, at });
        } catch (error) {
          return { at, error };
        }
        at += size.bytes + size.packed;
      }
      return undefined;
    } finally {
      kernel.giveBack();
    }
  }

  /** True if a page's header starts at this place in the chunk. */
  async #isPage({ start, bytes }: Chunk, place: number): Promise<boolean> {
    let at = start;
    while (at < place) {
      const size = await this.#sizeAt(at, start + bytes);
      if (size === undefined) return false;
      at += size.bytes + size.packed;
    }
    return at === place;
  }

  async #sizeAt(at: number, end: number): Promise<PageSize | undefined> {
    const length = Math.min(end - at, LONG_HEADER_BYTES);
    const bytes = await readExactly(this.#handle, this.#file, at, length);
    const kernel = PageKernel.take();
    try {
      return new HeaderReader(kernel).size(bytes);
    } finally {
      kernel.giveBack();
    }
  }
}
