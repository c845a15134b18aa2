import { crc32 } from 'node:zlib';
import {
  decodeThrift,
  encodeFooter,
  encodeThrift,
  footerIn,
  integerIn,
  PARQUET_MAGIC,
  readThrift,
  structIn,
  structsIn,
  thrift,
  type ThriftStruct,
  type ThriftValue,
} from './thrift.ts';

/** Numbers of fields in parquet.thrift. */
const FILE = { rows: 3, rowGroups: 4 } as const;
const GROUP = { columns: 1, bytes: 2, rows: 3, fileOffset: 5, packed: 6, ordinal: 7 } as const;
const CHUNK = {
  metadata: 3,
  offsetIndex: 4,
  offsetIndexLength: 5,
  columnIndex: 6,
  columnIndexLength: 7,
} as const;
const METADATA = { unpacked: 6, packed: 7, dataPage: 9, dictionaryPage: 11 } as const;
const OFFSET_INDEX = { pages: 1 } as const;
const PAGE = { offset: 1, bytes: 2 } as const;

/** Largest ordinal of a row group, which has 16 bits. */
const MOST_ORDINALS = 32_767;

/** The page index of one column of one row group; the file stores it after all row groups. */
interface PageIndex {
  readonly chunk: ThriftStruct;
  readonly columnIndex: Uint8Array | undefined;
  readonly offsetIndex: Uint8Array | undefined;
}

/**
 * Assembles one Parquet file from small files with the same columns. The small files are encoded separately,
 * so that threads can encode row groups:
 *
 *     small file:  "PAR1", pages, page index, footer, its length, "PAR1"
 *     whole file:  "PAR1", pages of the first, pages of the second, …, the page indexes, one footer, its length, "PAR1"
 *
 * Each page gets a checksum, and every offset and size in footers and page indexes is adjusted. Everything
 * else stays as the encoder made it.
 */
export class FileAssembly {
  #first: ThriftStruct | undefined;
  #position = PARQUET_MAGIC.length;
  #rows = 0;
  readonly #groups: ThriftStruct[] = [];
  readonly #indexes: PageIndex[] = [];

  /** The next bytes of the whole file. */
  add(file: Uint8Array): Uint8Array[] {
    const { footer } = footerIn(file);
    const begins = this.#first === undefined;
    this.#first ??= footer;
    const pages = new SummedPages(file, this.#position);
    for (const group of structsIn(footer, FILE.rowGroups)) {
      this.#rows += integerIn(group, GROUP.rows) ?? 0;
      const at = pages.position;
      let grown = 0;
      for (const chunk of structsIn(group, GROUP.columns)) {
        grown += takeChunk(chunk, pages);
        this.#indexes.push(takeIndex(chunk, file, pages));
      }
      for (const field of [GROUP.bytes, GROUP.packed]) grow(group, field, grown);
      if (integerIn(group, GROUP.fileOffset)) group.set(GROUP.fileOffset, thrift.i64(at));
      if (this.#groups.length > MOST_ORDINALS) group.delete(GROUP.ordinal);
      else group.set(GROUP.ordinal, thrift.i16(this.#groups.length));
      this.#groups.push(group);
    }
    this.#position = pages.position;
    return [...(begins ? [PARQUET_MAGIC] : []), ...pages.pieces];
  }

  /** The bytes after all pages. At least one file was added before. */
  end(): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    const place = (chunk: ThriftStruct, at: number, lengthAt: number, bytes: Uint8Array | undefined) => {
      if (bytes === undefined) return;
      chunk.set(at, thrift.i64(this.#position));
      chunk.set(lengthAt, thrift.i32(bytes.length));
      pieces.push(bytes);
      this.#position += bytes.length;
    };
    for (const { chunk, columnIndex } of this.#indexes)
      place(chunk, CHUNK.columnIndex, CHUNK.columnIndexLength, columnIndex);
    for (const { chunk, offsetIndex } of this.#indexes)
      place(chunk, CHUNK.offsetIndex, CHUNK.offsetIndexLength, offsetIndex);
    const footer = this.#first as ThriftStruct;
    footer.set(FILE.rows, thrift.i64(this.#rows));
    footer.set(FILE.rowGroups, thrift.structs(this.#groups));
    return [...pieces, encodeFooter(footer)];
  }
}

/**
 * Copies the pages of a column chunk and corrects their positions. Returns the number of bytes by which they
 * have grown.
 */
function takeChunk(chunk: ThriftStruct, pages: SummedPages): number {
  const metadata = structIn(chunk, CHUNK.metadata);
  const places = [METADATA.dictionaryPage, METADATA.dataPage].flatMap((field) => {
    const at = integerIn(metadata, field);
    return at ? [{ field, at }] : [];
  });
  if (places.length === 0) return 0;
  const from = Math.min(...places.map(({ at }) => at));
  const grown = pages.take(from, integerIn(metadata, METADATA.packed) ?? 0);
  for (const { field, at } of places) metadata.set(field, thrift.i64(pages.placeOf(at).at));
  for (const field of [METADATA.unpacked, METADATA.packed]) grow(metadata, field, grown);
  return grown;
}

function takeIndex(chunk: ThriftStruct, file: Uint8Array, pages: SummedPages): PageIndex {
  const bytesOf = (at: number, lengthAt: number) => {
    const [start, length] = [integerIn(chunk, at), integerIn(chunk, lengthAt)];
    return start === undefined || length === undefined ? undefined : file.slice(start, start + length);
  };
  const offsetIndex = bytesOf(CHUNK.offsetIndex, CHUNK.offsetIndexLength);
  return {
    chunk,
    columnIndex: bytesOf(CHUNK.columnIndex, CHUNK.columnIndexLength),
    offsetIndex: offsetIndex && movePages(offsetIndex, pages),
  };
}

function movePages(bytes: Uint8Array, pages: SummedPages): Uint8Array {
  const index = decodeThrift(bytes);
  for (const page of structsIn(index, OFFSET_INDEX.pages)) {
    const place = pages.placeOf(integerIn(page, PAGE.offset) ?? 0);
    page.set(PAGE.offset, thrift.i64(place.at));
    page.set(PAGE.bytes, thrift.i32(place.bytes));
  }
  return encodeThrift(index);
}

function grow(fields: ThriftStruct, field: number, bytes: number): void {
  const before = integerIn(fields, field);
  if (before !== undefined) fields.set(field, thrift.i64(before + bytes));
}

/** Numbers of fields of a page header in parquet.thrift. */
const HEADER = { packed: 3, crc: 4 } as const;

/** CRC-32 of a page's bytes for the header's field `crc`, a signed number. */
export function pageSum(...pieces: readonly Uint8Array[]): ThriftValue {
  return thrift.i32(pieces.reduce((sum, piece) => crc32(piece, sum), 0) | 0);
}

/** Position of a page's header, and bytes of header and page. */
interface Place {
  readonly at: number;
  readonly bytes: number;
}

/** Copies pages of a small file to a large one and adds a checksum to each; the encoder writes none. */
class SummedPages {
  /** Headers and pages, in order. */
  readonly pieces: Uint8Array[] = [];
  /** Position of the next page in the large file. */
  position: number;
  readonly #file: Uint8Array;
  /** By position in the small file. */
  readonly #places = new Map<number, Place>();

  constructor(file: Uint8Array, position: number) {
    [this.#file, this.position] = [file, position];
  }

  /** Takes consecutive pages. Returns the number of bytes that their headers have grown by. */
  take(from: number, bytes: number): number {
    const begins = this.position;
    for (let at = from; at < from + bytes;) at = this.#takePage(at);
    return this.position - begins - bytes;
  }

  /** Position in the large file of a page that was taken. */
  placeOf(at: number): Place {
    const place = this.#places.get(at);
    if (place === undefined) throw new RangeError(`no page begins at byte ${at}`);
    return place;
  }

  /** Returns the end of the page. */
  #takePage(at: number): number {
    const { fields, bytes } = readThrift(this.#file.subarray(at));
    const end = at + bytes + (integerIn(fields, HEADER.packed) ?? 0);
    const page = this.#file.subarray(at + bytes, end);
    fields.set(HEADER.crc, pageSum(page));
    const header = encodeThrift(fields);
    this.pieces.push(header, page);
    this.#places.set(at, { at: this.position, bytes: header.length + page.length });
    this.position += header.length + page.length;
    return end;
  }
}
