import { decodeThrift, encodeThrift, integerIn, structIn, structsIn, thrift } from './thrift.ts';
import type { ThriftStruct } from './thrift.ts';

/** Numbers of the fields in parquet.thrift. */
const FILE = { rows: 3, rowGroups: 4 } as const;
const GROUP = { columns: 1, rows: 3, fileOffset: 5, ordinal: 7 } as const;
const CHUNK = {
  fileOffset: 2,
  metadata: 3,
  offsetIndex: 4,
  offsetIndexLength: 5,
  columnIndex: 6,
  columnIndexLength: 7,
} as const;
const METADATA = { dataPage: 9, indexPage: 10, dictionaryPage: 11, bloomFilter: 14 } as const;
const OFFSET_INDEX = { pages: 1 } as const;
const PAGE = { offset: 1 } as const;

const MAGIC = Buffer.from('PAR1', 'latin1');
/** Largest number that the 16 bits of a row group's ordinal hold. */
const MOST_ORDINALS = 32_767;

/** The page index of one column of one row group, which the file has behind all row groups. */
interface PageIndex {
  readonly chunk: ThriftStruct;
  readonly columnIndex: Uint8Array | undefined;
  readonly offsetIndex: Uint8Array | undefined;
}

/**
 * Makes one Parquet file out of small ones with the same columns, each encoded by itself, so that threads can
 * encode row groups:
 *
 *     small file:  "PAR1", pages, page index, footer, its length, "PAR1"
 *     whole file:  "PAR1", pages of the first, pages of the second, …, the page indexes, one footer, its length, "PAR1"
 *
 * Every offset in footers and page indexes moves with its pages; all else stays as the encoder made it.
 *
 */
export class FileAssembly {
  #first: ThriftStruct | undefined;
  #position = MAGIC.length;
  #rows = 0;
  readonly #groups: ThriftStruct[] = [];
  readonly #indexes: PageIndex[] = [];

  /** The bytes that come next in the whole file. */
  add(file: Uint8Array): Uint8Array[] {
    const length = new DataView(file.buffer, file.byteOffset + file.length - 8, 4).getUint32(0, true);
    const footer = decodeThrift(file.subarray(file.length - 8 - length, file.length - 8));
    const begins = this.#first === undefined;
    this.#first ??= footer;
    const groups = structsIn(footer, FILE.rowGroups);
    const by = this.#position - MAGIC.length;
    let end = file.length - 8 - length;
    for (const group of groups) {
      this.#rows += integerIn(group, GROUP.rows) ?? 0;
      for (const chunk of structsIn(group, GROUP.columns)) {
        for (const field of [CHUNK.columnIndex, CHUNK.offsetIndex])
          end = Math.min(end, integerIn(chunk, field) ?? end);
        this.#indexes.push(takeIndex(chunk, file, by));
        move(chunk, CHUNK.fileOffset, by);
        for (const field of Object.values(METADATA)) move(structIn(chunk, CHUNK.metadata), field, by);
      }
      move(group, GROUP.fileOffset, by);
      if (this.#groups.length > MOST_ORDINALS) group.delete(GROUP.ordinal);
      else group.set(GROUP.ordinal, thrift.i16(this.#groups.length));
      this.#groups.push(group);
    }
    this.#position += end - MAGIC.length;
    return [...(begins ? [MAGIC] : []), file.subarray(MAGIC.length, end)];
  }

  /** The bytes behind all pages. At least one file has been added. */
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
    const bytes = encodeThrift(footer);
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, bytes.length, true);
    return [...pieces, bytes, length, MAGIC];
  }
}

function takeIndex(chunk: ThriftStruct, file: Uint8Array, by: number): PageIndex {
  const bytesOf = (at: number, lengthAt: number) => {
    const [start, length] = [integerIn(chunk, at), integerIn(chunk, lengthAt)];
    return start === undefined || length === undefined ? undefined : file.slice(start, start + length);
  };
  const offsetIndex = bytesOf(CHUNK.offsetIndex, CHUNK.offsetIndexLength);
  return {
    chunk,
    columnIndex: bytesOf(CHUNK.columnIndex, CHUNK.columnIndexLength),
    offsetIndex: offsetIndex && movePages(offsetIndex, by),
  };
}

function movePages(bytes: Uint8Array, by: number): Uint8Array {
  const index = decodeThrift(bytes);
  for (const page of structsIn(index, OFFSET_INDEX.pages)) move(page, PAGE.offset, by);
  return encodeThrift(index);
}

/** Adds to an offset; 0 means that there is none. */
function move(fields: ThriftStruct, field: number, by: number): void {
  const offset = integerIn(fields, field);
  if (offset) fields.set(field, thrift.i64(offset + by));
}
