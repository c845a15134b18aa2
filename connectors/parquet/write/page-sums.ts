import { crc32 } from 'node:zlib';
import { encodeThrift, integerIn, readThrift, thrift, type ThriftValue } from './thrift.ts';

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
export class SummedPages {
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
