import type { PageKernel } from './page-kernel.ts';

/** Sizes of a page of any kind. */
export interface PageSize {
  /** Bytes of the header itself. */
  readonly bytes: number;
  /** Bytes of the page after its header, as stored. */
  readonly packed: number;
  /** CRC-32 of these bytes, from 0 to 2^32 - 1; undefined if the writer stored none. */
  readonly crc: number | undefined;
}

/** Header of a page of values or of a dictionary. */
export interface PageHeader extends PageSize {
  readonly kind: 'dictionary' | 'values';
  /** Bytes of the uncompressed page. */
  readonly unpacked: number;
  readonly values: number;
  readonly encoding: string;
  /**
   * For data pages of version 2: bytes of levels before the values (never compressed), and whether the values
   * are compressed.
   */
  readonly second?: { readonly levels: number; readonly isPacked: boolean };
}

/** Largest page that is read. */
const PAGE_BYTES = 1 << 28;
/** Largest header; headers of text pages may have long statistics. */
export const HEADER_BYTES = 1 << 12;
export const LONG_HEADER_BYTES = 1 << 20;

/** Page types and encodings by number (parquet.thrift). */
const [VALUES, DICTIONARY, SECOND_VALUES] = [0, 2, 3];
const encodings = [
  'PLAIN',
  'GROUP_VAR_INT',
  'PLAIN_DICTIONARY',
  'RLE',
  'BIT_PACKED',
  'DELTA_BINARY_PACKED',
  'DELTA_LENGTH_BYTE_ARRAY',
  'DELTA_BYTE_ARRAY',
  'RLE_DICTIONARY',
  'BYTE_STREAM_SPLIT',
];

/** Layout of ../assembly/headers.ts: fields of a struct, number of structs, then the cursor. */
const FIELDS = 16;
const [FALSE, STRUCT] = [-4, -5];
const OUT_BYTES = 4 * 4 * FIELDS;

/**
 * Reads page headers with a WebAssembly kernel. It reserves a place in the kernel's memory until that is
 * cleared.
 */
export class HeaderReader {
  readonly #kernel: PageKernel;
  #at: number;
  #room: number;

  constructor(kernel: PageKernel) {
    this.#kernel = kernel;
    this.#room = HEADER_BYTES;
    this.#at = kernel.reserve(OUT_BYTES + 4 + HEADER_BYTES);
  }

  /** Reads the header at the start of some bytes. Throws an Error if it is damaged or of another kind. */
  read(bytes: Uint8Array): PageHeader {
    const { length, fields } = this.#fields(bytes, HEADER_BYTES);
    return pageHeader(length, fields);
  }

  /**
   * Reads only the sizes, for any kind of page. Undefined if the bytes do not start with a complete header.
   */
  size(bytes: Uint8Array): PageSize | undefined {
    try {
      const { length, fields } = this.#fields(bytes, LONG_HEADER_BYTES);
      return pageSize(length, fields);
    } catch {
      return undefined;
    }
  }

  #fields(bytes: Uint8Array, most: number): { readonly length: number; readonly fields: Int32Array } {
    const length = this.#parse(bytes.subarray(0, HEADER_BYTES));
    const whole = length > 0 || bytes.length <= HEADER_BYTES ? length : this.#parse(bytes.subarray(0, most));
    if (whole === 0) throw new Error('a header that makes no sense');
    return { length: whole, fields: new Int32Array(this.#kernel.buffer, this.#at, OUT_BYTES / 4) };
  }

  #parse(bytes: Uint8Array): number {
    if (bytes.length > this.#room) {
      this.#room = bytes.length;
      this.#at = this.#kernel.reserve(OUT_BYTES + 4 + bytes.length);
    }
    const from = this.#at + OUT_BYTES + 4;
    this.#kernel.bytes.set(bytes, from);
    return this.#kernel.functions.readHeader(from, bytes.length, this.#at, this.#at + OUT_BYTES);
  }
}

function pageSize(bytes: number, header: Int32Array): PageSize {
  const packed = header[3];
  if (packed < 0) throw new Error('a size that makes no sense');
  return { bytes, packed, crc: header[0] === 1 ? header[4] >>> 0 : undefined };
}

function pageHeader(bytes: number, fields: Int32Array): PageHeader {
  const of = (struct: number) => fields.subarray(FIELDS * struct, FIELDS * (struct + 1));
  const [header, first, dictionary, second] = [0, 1, 2, 3].map(of);
  const type = header[1];
  const sizes = { ...pageSize(bytes, header), packed: size(header[3]), unpacked: size(header[2]) };
  if (type === DICTIONARY && header[7] === STRUCT)
    return {
      ...sizes,
      kind: 'dictionary',
      values: size(dictionary[1]),
      encoding: String(encodings[dictionary[2]]),
    };
  if (type === VALUES && header[5] === STRUCT)
    return { ...sizes, kind: 'values', values: size(first[1]), encoding: String(encodings[first[2]]) };
  if (type !== SECOND_VALUES || header[8] !== STRUCT) throw new Error(`a page of the kind ${type}`);
  const [, values, nulls, rows, encoding, definitions, repetitions, isPacked] = second;
  if (nulls !== 0 || rows !== values || repetitions !== 0) throw new Error('a page with nulls or lists');
  const levels = size(definitions);
  if (levels > Math.min(sizes.packed, sizes.unpacked))
    throw new Error(`${levels} bytes of levels in a page of ${sizes.packed}`);
  return {
    ...sizes,
    kind: 'values',
    values: size(values),
    encoding: String(encodings[encoding]),
    second: { levels, isPacked: isPacked !== FALSE },
  };
}

function size(number: number): number {
  if (number >= 0 && number <= PAGE_BYTES) return number;
  throw new Error(number === -1 ? 'a size that is missing' : 'a size that no page has');
}
