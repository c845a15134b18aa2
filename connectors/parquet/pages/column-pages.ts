import * as zlib from 'node:zlib';
import { FactorFlowError } from '../../../engine/errors.ts';
import { hasZstd } from '../../compression/compressions.ts';
import { unpackBlock } from '../../compression/lz4-frame.ts';
import { messageOf } from '../../files/file-problem.ts';
import { type FetchCounter, type RandomAccess, readInto } from '../../files/random-access.ts';
import type { ColumnChunkInfo } from '../footer.ts';
import { HEADER_BYTES, HeaderReader, type PageHeader } from './page-header.ts';
import type { PageKernel } from './page-kernel.ts';
import { type PagePlace, requireSum } from './page-sums.ts';

/** Encodings of a dictionary's values, and of indices into the dictionary. */
const plain = ['PLAIN', 'PLAIN_DICTIONARY'];
const indexed = ['RLE_DICTIONARY', 'PLAIN_DICTIONARY'];
const STATE_BYTES = 24;

/** True for codecs of pages that this reader supports. */
export function isReadCodec(codec: string): boolean {
  return codec === 'snappy' || pageCodecs[codec] !== undefined;
}

function unpackerOf(codec: string, kernel: PageKernel): UnpackPage {
  if (codec === 'snappy') return unpackSnappy(kernel);
  return codec === 'zstd' ? unpackZstd(pageCodecs.zstd) : pageCodecs[codec];
}

/** Returns a number of the reader's width for each plainly stored value of a page. */
export type PlainValues = (page: Uint8Array, values: number) => Uint8Array;

/**
 * Reads the numbers of one column of a row group, page by page. Stored bytes are read a window at a time, one
 * page is decompressed at a time, and the caller chooses the number of values per call. So memory does not
 * grow with the row group.
 */
export class ColumnPages {
  readonly #window: FileWindow;
  readonly #kernel: PageKernel;
  /** Position of the first page. */
  readonly #first: PagePlace;
  /** Bytes of a value: 4 or 8. */
  readonly #width: number;
  readonly #optional: boolean;
  readonly #unpack: UnpackPage;
  readonly #plainOf: PlainValues;
  readonly #headers: HeaderReader;
  /** Position of the next page's header. */
  #at = 0;
  #dictionary: { readonly at: number; readonly size: number } | undefined;
  /**
   * Number of values of the page that were not returned yet. They are in `#plain` if they are stored plainly,
   * else in the state of runs of indices.
   */
  #left = 0;
  /** Number of values to pass over before the next ones are returned. */
  #passed = 0;
  #plain: Uint8Array | undefined;
  readonly #state: number;
  #page = 0;
  #pageRoom = 0;

  constructor(
    window: FileWindow,
    { file, rowGroup, column, codec, start }: ColumnChunkInfo & Pick<PagePlace, 'file' | 'rowGroup'>,
    width: 4 | 8,
    optional: boolean,
    kernel: PageKernel,
    plainOf: PlainValues = (bytes) => bytes,
  ) {
    this.#plainOf = plainOf;
    [this.#window, this.#width, this.#optional, this.#kernel] = [window, width, optional, kernel];
    this.#first = { file, rowGroup, column, at: start };
    this.#unpack = unpackerOf(codec, kernel);
    this.#state = kernel.reserve(STATE_BYTES);
    this.#headers = new HeaderReader(kernel);
  }

  /** Starts at the page at `at`, after its first `skip` rows. `out` has room for `most` values. */
  async begin(
    { at, skip }: { readonly at: number; readonly skip: number },
    out: number,
    most: number,
  ): Promise<void> {
    await this.#guard(async () => {
      const header = this.#headers.read(
        await this.#window.read(0, Math.min(this.#window.size, HEADER_BYTES)),
      );
      if (header.kind === 'dictionary') await this.#nextPage();
      this.#at = at;
    });
    for (let rows = skip; rows > 0; rows -= most) await this.fill(out, Math.min(rows, most));
  }

  /** Passes over the next `rows` values. Pages without other values are not decompressed. */
  pass(rows: number): void {
    this.#passed += rows;
  }

  /**
   * Writes the next `rows` values to `out` in the kernel's memory. Throws PageProblem, or the file system's
   * error.
   */
  async fill(out: number, rows: number): Promise<void> {
    await this.#guard(async () => {
      while (this.#passed > 0) {
        while (this.#left === 0 && this.#passed > 0) await this.#nextPage();
        const some = Math.min(this.#left, this.#passed, rows);
        this.#give(out, some);
        this.#left -= some;
        this.#passed -= some;
      }
      for (let done = 0; done < rows;) {
        while (this.#left === 0) await this.#nextPage();
        const some = Math.min(this.#left, rows - done);
        this.#give(out + done * this.#width, some);
        this.#left -= some;
        done += some;
      }
    });
  }

  async #guard(read: () => Promise<void>): Promise<void> {
    try {
      await read();
    } catch (error) {
      if (error instanceof FactorFlowError) throw error;
      throw new PageProblem(messageOf(error), this.#first.column);
    }
  }

  #give(out: number, rows: number): void {
    if (this.#plain !== undefined) {
      const bytes = rows * this.#width;
      this.#kernel.bytes.set(this.#plain.subarray(0, bytes), out);
      this.#plain = this.#plain.subarray(bytes);
      return;
    }
    const { at, size } = this.#dictionary as { at: number; size: number };
    const { readRuns32, readRuns64 } = this.#kernel.functions;
    const read = this.#width === 4 ? readRuns32 : readRuns64;
    if (read(this.#state, rows, at, size, out) === 0)
      throw new Error('indices that the page or the dictionary does not have');
  }

  async #nextPage(): Promise<void> {
    const rest = this.#window.size - this.#at;
    if (rest <= 0) throw new Error('the pages end early');
    const header = this.#headers.read(await this.#window.read(this.#at, Math.min(rest, HEADER_BYTES)));
    if (header.bytes + header.packed > rest) throw new Error('a page that ends after its column');
    if (header.kind !== 'dictionary' && this.#passed > 0 && header.values <= this.#passed) {
      this.#at += header.bytes + header.packed;
      this.#passed -= header.values;
      return;
    }
    const packed = await this.#window.read(this.#at + header.bytes, header.packed);
    requireSum(packed, header.crc, { ...this.#first, at: this.#first.at + this.#at });
    this.#at += header.bytes + header.packed;
    if (header.kind === 'dictionary') this.#takeDictionary(header, this.#unpacked(packed, header.unpacked));
    else this.#takeValues(header, this.#valuesOf(header, packed));
  }

  #unpacked(packed: Uint8Array, size: number): Uint8Array {
    const bytes = size === 0 && packed.length === 0 ? packed : this.#unpack(packed, size);
    if (bytes.length !== size) throw new Error(`a page of ${bytes.length} bytes, whose header says ${size}`);
    return bytes;
  }

  /** The values of a page, without the levels before them. */
  #valuesOf({ unpacked, values, second }: PageHeader, packed: Uint8Array): Uint8Array {
    if (second !== undefined) {
      const [levels, rest] = [packed.subarray(0, second.levels), packed.subarray(second.levels)];
      this.#requirePresent(levels, values);
      if (second.isPacked) return this.#unpacked(rest, unpacked - second.levels);
      if (packed.length !== unpacked)
        throw new Error(`a page of ${packed.length} bytes, whose header says ${unpacked}`);
      return rest;
    }
    const bytes = this.#unpacked(packed, unpacked);
    if (!this.#optional) return bytes;
    if (bytes.length < 4) throw new Error('a page without levels');
    const levels = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    if (levels > bytes.length - 4) throw new Error('levels that end after their page');
    this.#requirePresent(bytes.subarray(4, 4 + levels), values);
    return bytes.subarray(4 + levels);
  }

  #requirePresent(levels: Uint8Array, values: number): void {
    if (this.#optional ? !allPresent(levels, values) : levels.length > 0)
      throw new Error('a page with nulls');
  }

  #takeDictionary({ values, encoding }: PageHeader, stored: Uint8Array): void {
    if (this.#dictionary !== undefined) throw new Error('a second dictionary');
    const bytes = this.#plainOf(stored, values);
    if (!plain.includes(encoding) || bytes.length !== values * this.#width)
      throw new Error(`a dictionary of ${values} values in ${bytes.length} bytes (${encoding})`);
    const at = this.#kernel.reserve(bytes.length);
    this.#kernel.bytes.set(bytes, at);
    this.#dictionary = { at, size: values };
  }

  #takeValues({ values, encoding }: PageHeader, bytes: Uint8Array): void {
    this.#left = values;
    if (encoding === 'PLAIN') {
      const numbers = this.#plainOf(bytes, values);
      if (numbers.length !== values * this.#width)
        throw new Error(`${values} values in ${numbers.length} bytes`);
      this.#plain = numbers;
      return;
    }
    if (!indexed.includes(encoding) || this.#dictionary === undefined)
      throw new Error(`the encoding ${encoding}`);
    this.#plain = undefined;
    if (bytes.length === 0) throw new Error('a page of indices without their width');
    const indices = bytes.subarray(1);
    const at = this.#place(indices);
    new Uint32Array(this.#kernel.buffer, this.#state, STATE_BYTES / 4).set([
      at,
      at + indices.length,
      bytes[0],
      0,
      0,
      0,
    ]);
  }

  /** Copies a page into the kernel's memory, and returns its address. */
  #place(bytes: Uint8Array): number {
    if (bytes.length > this.#pageRoom) {
      this.#pageRoom = 2 * bytes.length;
      this.#page = this.#kernel.reserve(this.#pageRoom);
    }
    this.#kernel.bytes.set(bytes, this.#page);
    return this.#page;
  }
}

/**
 * True if the definition levels of a page show that no value is null. The levels are runs of one bit (see
 * ../assembly/runs.ts), and all must be 1. False for truncated levels.
 */
export function allPresent(levels: Uint8Array, values: number): boolean {
  let at = 0;
  for (let done = 0; done < values;) {
    let head = 0;
    for (let scale = 1; ; scale *= 128) {
      if (at >= levels.length || scale > 2 ** 28) return false;
      const byte = levels[at++];
      head += (byte & 127) * scale;
      if (byte < 128) break;
    }
    const count = Math.floor(head / 2);
    if (head % 2 === 0) {
      if (levels[at++] !== 1) return false;
      done += count;
      continue;
    }
    if (at + count > levels.length) return false;
    for (let end = at + count; at < end; at++, done += 8) {
      const expected = values - done >= 8 ? 255 : 2 ** (values - done) - 1;
      if (values > done && (levels[at] & expected) !== expected) return false;
    }
  }
  return true;
}

/** Larger pages are left to the usual decompressor, since a damaged header may claim any size. */
const LARGEST = 1 << 22;

/** Undocumented members of Node's decompressor, which zlib's own functions for whole buffers use. */
interface Decompressor {
  readonly destroyed: boolean;
  /** Output room and input that the last write left. */
  readonly _writeState: Uint32Array;
  readonly _handle: {
    writeSync(
      flush: number,
      from: Uint8Array,
      start: number,
      length: number,
      to: Uint8Array,
      at: number,
      room: number,
    ): void;
  };
}

/**
 * The thread's decompressor. Undefined before its first page; false if this Node has no such decompressor.
 */
let kept: Decompressor | false | undefined;

function isDecompressor(value: object): value is Decompressor {
  if (!('_handle' in value && '_writeState' in value && 'destroyed' in value)) return false;
  const { _handle: handle, _writeState: state } = value;
  const isHandle = typeof handle === 'object' && handle !== null && 'writeSync' in handle;
  return isHandle && state instanceof Uint32Array && state.length === 2;
}

function decompressor(): Decompressor | false {
  if (kept !== undefined && !(kept && kept.destroyed)) return kept;
  const made = zlib.createZstdDecompress();
  // `whole` reports the error.
  made.on('error', () => {});
  return (kept = isDecompressor(made) && made);
}

/**
 * Decompresses zstd with one decompressor for all pages of a thread. zstdDecompressSync makes one for each
 * call, which takes as long as decompressing a page. A page with an unexpected result is passed to `whole`.
 * The result's memory is reused by the next call.
 */
export function unpackZstd(whole: UnpackPage): UnpackPage {
  let room = new Uint8Array(0);
  return (bytes, size) => {
    const own = size <= LARGEST && decompressor();
    if (!own) return whole(bytes, size);
    // Room for one more byte, to detect a page that is too long.
    if (room.length <= size) room = new Uint8Array(2 * size + 1);
    const { ZSTD_e_end: end } = zlib.constants;
    own._handle.writeSync(end, bytes, 0, bytes.length, room, 0, size + 1);
    const [left, unread] = own._writeState;
    if (!own.destroyed && left === 1 && unread === 0) return room.subarray(0, size);
    kept = undefined;
    return whole(bytes, size);
  };
}

/** Decompresses a page to exactly `size` bytes. Throws an Error if the bytes are damaged. */
export type UnpackPage = (bytes: Uint8Array, size: number) => Uint8Array;

/**
 * At first at most this number of bytes is allocated for a page's values, since a damaged header may claim
 * any size.
 */
const FIRST_BYTES = 1 << 22;

const options = (size: number) => ({
  chunkSize: Math.max(64, Math.min(size, FIRST_BYTES)),
  maxOutputLength: Math.max(1, size),
});

/** Page codecs that Node or a kernel decompresses, by name in lower case. */
export const pageCodecs: Readonly<Record<string, UnpackPage>> = {
  uncompressed: (bytes) => bytes,
  gzip: (bytes, size) => zlib.gunzipSync(bytes, options(size)),
  brotli: (bytes, size) => zlib.brotliDecompressSync(bytes, options(size)),
  lz4_raw: (bytes, size) => {
    // A byte of lz4 unpacks to at most 255 bytes, so a larger size in the header need not be allocated.
    const target = new Uint8Array(Math.min(size, 255 * bytes.length));
    return target.subarray(0, unpackBlock(bytes, target, 0, target.length));
  },
  ...(hasZstd() && {
    zstd: (bytes: Uint8Array, size: number) => zlib.zstdDecompressSync(bytes, options(size)),
  }),
};

/** Decompresses Snappy in the kernel. The page is copied out, since the kernel's memory may move. */
export function unpackSnappy(kernel: PageKernel): UnpackPage {
  let [place, room] = [0, 0];
  return (bytes, size) => {
    // A byte of Snappy unpacks to at most 64 bytes.
    if (size > 64 * bytes.length) throw new Error('a size that no such block has');
    if (bytes.length + size > room) {
      room = 2 * (bytes.length + size);
      place = kernel.reserve(room);
    }
    kernel.bytes.set(bytes, place);
    const out = place + bytes.length;
    if (kernel.functions.unpackSnappy(place, bytes.length, out, size) === 0)
      throw new Error('the block does not unpack');
    return kernel.bytes.slice(out, out + size);
  };
}

/**
 * Pages that cannot be read page by page: damaged, or of a kind that only the decoder reads. The decoder then
 * reads the row group from there on, or reports the error.
 */
export class PageProblem extends Error {
  readonly column: string;

  constructor(message: string, column: string) {
    super(message);
    this.column = column;
  }
}

/** Most bytes of one read, unless a page has more. */
const WINDOW = 1 << 20;

/**
 * Buffers that are not in use; the thread's next readers take them, since a new buffer for each row group
 * would be garbage.
 */
const idle: Uint8Array[] = [];
const MOST_IDLE = 4;

/** Stored bytes of one column of a row group, read a window at a time. */
export class FileWindow {
  readonly #handle: RandomAccess;
  readonly #file: string;
  readonly #counter: FetchCounter;
  readonly #start: number;
  readonly size: number;
  readonly #window: number;
  /** The window: #bytes[0, #length) are the column's bytes from #from on. */
  #bytes: Uint8Array = new Uint8Array(0);
  #from = 0;
  #length = 0;

  /** `share`: approximate share of the column that will be read. */
  constructor(
    handle: RandomAccess,
    file: string,
    counter: FetchCounter,
    { start, bytes }: { readonly start: number; readonly bytes: number },
    share = 1,
  ) {
    [this.#handle, this.#file, this.#counter, this.#start, this.size] = [handle, file, counter, start, bytes];
    this.#window = Math.min(WINDOW, Math.ceil(1.1 * share * bytes) + HEADER_BYTES);
  }

  /** Bytes [at, at + length) of the column, valid until the next call. */
  async read(at: number, length: number): Promise<Uint8Array> {
    const kept = at < this.#from ? 0 : Math.max(0, this.#from + this.#length - at);
    if (kept < length) {
      const all = Math.min(Math.max(length, this.#window), this.size - at);
      const old = this.#bytes;
      if (all > old.length)
        this.#bytes = all <= WINDOW ? (idle.pop() ?? new Uint8Array(WINDOW)) : new Uint8Array(all);
      this.#bytes.set(old.subarray(this.#length - kept, this.#length));
      const missing = this.#bytes.subarray(kept, all);
      await readInto(this.#handle, this.#file, missing, this.#start + at + kept);
      this.#counter.fetches++;
      this.#counter.bytes += missing.length;
      [this.#from, this.#length] = [at, all];
    }
    return this.#bytes.subarray(at - this.#from, at - this.#from + length);
  }

  /** Releases the window to the next reader. */
  giveBack(): void {
    if (this.#bytes.length === WINDOW && idle.length < MOST_IDLE) idle.push(this.#bytes);
    [this.#bytes, this.#length] = [new Uint8Array(0), 0];
  }
}
