import { crc32 } from 'node:zlib';
import { encodeThrift, integerIn, readThrift, thrift, type ThriftValue } from './thrift.ts';

/** Numbers of the fields of a page's header in parquet.thrift. */
const HEADER = { packed: 3, crc: 4 } as const;

/** The CRC-32 of a page's bytes for the field `crc` of its header, which is a signed number. */
export function pageSum(...pieces: readonly Uint8Array[]): ThriftValue {
  return thrift.i32(pieces.reduce((sum, piece) => crc32(piece, sum), 0) | 0);
}

/** The place of a page's header, and the bytes of header and page. */
interface Place {
  readonly at: number;
  readonly bytes: number;
}

/** Pages of a small file on their way to a large one, where each has a checksum, which the encoder leaves out. */
export class SummedPages {
  /** Headers and pages, in their order. */
  readonly pieces: Uint8Array[] = [];
  /** The place of the next page in the large file. */
  position: number;
  readonly #file: Uint8Array;
  /** By their places in the small file. */
  readonly #places = new Map<number, Place>();

  constructor(file: Uint8Array, position: number) {
    [this.#file, this.position] = [file, position];
  }

  /** Takes pages that follow each other. Gives the bytes that their headers have grown by. */
  take(from: number, bytes: number): number {
    const begins = this.position;
    for (let at = from; at < from + bytes;) at = this.#takePage(at);
    return this.position - begins - bytes;
  }

  /** The place in the large file of a page that was taken. */
  placeOf(at: number): Place {
    const place = this.#places.get(at);
    if (place === undefined) throw new RangeError(`no page begins at byte ${at}`);
    return place;
  }

  /** Gives the end of the page. */
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
