import { parquetHeader } from 'hyparquet/src/column.js';
import { messageOf } from '../../files/file-problem.ts';
import { checkThriftShape } from '../thrift-shape.ts';

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
  /** In a page of the second version, bytes of levels before the values, which are never packed, and whether the values are. */
  readonly second?: { readonly levels: number; readonly isPacked: boolean };
}

/** Most bytes of a page that is read here. */
const PAGE_BYTES = 1 << 28;
/** Most bytes of its header. */
export const HEADER_BYTES = 1 << 12;

/** The header at the beginning of some bytes; throws an Error for one that is damaged or of another kind. */
export function pageHeader(bytes: Uint8Array): PageHeader {
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
  checkThriftShape(bytes);
  const { type, compressed_page_size, uncompressed_page_size, data_page_header: first, data_page_header_v2: second, dictionary_page_header: dictionary } = parse(reader);
  const sizes = { bytes: reader.offset, packed: size(compressed_page_size), unpacked: size(uncompressed_page_size) };
  if (type === 'DICTIONARY_PAGE' && dictionary) return { ...sizes, kind: 'dictionary', values: size(dictionary.num_values), encoding: String(dictionary.encoding) };
  if (type === 'DATA_PAGE' && first) return { ...sizes, kind: 'values', values: size(first.num_values), encoding: String(first.encoding) };
  if (type !== 'DATA_PAGE_V2' || !second) throw new Error(`a page of the kind ${String(type)}`);
  if (second.num_nulls !== 0 || second.num_rows !== second.num_values || second.repetition_levels_byte_length !== 0) throw new Error('a page with nulls or lists');
  const levels = size(second.definition_levels_byte_length);
  if (levels > Math.min(sizes.packed, sizes.unpacked)) throw new Error(`${levels} bytes of levels in a page of ${sizes.packed}`);
  return { ...sizes, kind: 'values', values: size(second.num_values), encoding: String(second.encoding), second: { levels, isPacked: second.is_compressed !== false } };
}

function parse(reader: Parameters<typeof parquetHeader>[0]): ReturnType<typeof parquetHeader> {
  try {
    return parquetHeader(reader);
  } catch (error) {
    throw new Error(`a header that makes no sense: ${messageOf(error)}`, { cause: error });
  }
}

function size(number: unknown): number {
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= PAGE_BYTES) return number;
  throw new Error(`a size of ${String(number)}`);
}
