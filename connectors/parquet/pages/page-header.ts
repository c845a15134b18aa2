import type { PageKernel } from './page-kernel.ts';

/** A page of values, or of a dictionary, as its header describes it. */
export interface PageHeader {
  readonly kind: 'dictionary' | 'values';
  /** Bytes of the header itself. */
  readonly bytes: number;
  /** Bytes of the page behind it, and of the page once it is unpacked. */
  readonly packed: number;
  readonly unpacked: number;
  readonly values: number;
  readonly encoding: string;
  /**
   * In a page of the second version, bytes of levels before the values, which are never packed, and whether
   * the values are.
   */
  readonly second?: { readonly levels: number; readonly isPacked: boolean };
}

/** Most bytes of a page that is read here. */
const PAGE_BYTES = 1 << 28;
/** Most bytes of its header. */
export const HEADER_BYTES = 1 << 12;

/** Kinds of pages and encodings by their numbers (parquet.thrift). */
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

/** Fields of a struct, and structs, as ../assembly/headers.ts has them, and a cursor behind. */
const FIELDS = 16;
const [FALSE, STRUCT] = [-4, -5];
const OUT_BYTES = 4 * 4 * FIELDS;

/** Reads headers by a kernel, in whose memory it has a place until that is cleared. */
export class HeaderReader {
  readonly #kernel: PageKernel;
  readonly #at: number;

  constructor(kernel: PageKernel) {
    this.#kernel = kernel;
    this.#at = kernel.reserve(OUT_BYTES + 4 + HEADER_BYTES);
  }

  /**
   * The header at the beginning of some bytes; throws an Error for one that is damaged or of another kind.
   */
  read(bytes: Uint8Array): PageHeader {
    const from = this.#at + OUT_BYTES + 4;
    const some = bytes.length > HEADER_BYTES ? bytes.subarray(0, HEADER_BYTES) : bytes;
    this.#kernel.bytes.set(some, from);
    const length = this.#kernel.functions.readHeader(from, some.length, this.#at, this.#at + OUT_BYTES);
    if (length === 0) throw new Error('a header that makes no sense');
    return pageHeader(length, new Int32Array(this.#kernel.buffer, this.#at, OUT_BYTES / 4));
  }
}

function pageHeader(bytes: number, fields: Int32Array): PageHeader {
  const of = (struct: number) => fields.subarray(FIELDS * struct, FIELDS * (struct + 1));
  const [header, first, dictionary, second] = [0, 1, 2, 3].map(of);
  const type = header[1];
  const sizes = { bytes, packed: size(header[3]), unpacked: size(header[2]) };
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
