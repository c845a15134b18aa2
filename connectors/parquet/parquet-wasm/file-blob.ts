import { type FetchCounter, type RandomAccess, readInto } from '../../files/random-access.ts';
import type { PageSums } from '../pages/page-sums.ts';

/** Bytes that replace the file's bytes from a position on. */
interface Tail {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** An open file, with its read counter and page checksums. */
export interface BlobFile {
  readonly file: string;
  readonly handle: RandomAccess;
  readonly counter: FetchCounter;
  readonly sums: PageSums;
}

/**
 * A Blob over an open file on disk or on a web server. It reads only the slices that the decoder asks for,
 * and verifies the checksums of pages in them. The caller closes the handle. Faster than `fs.openAsBlob`, and
 * keeps I/O errors.
 */
export class FileBlob extends Blob {
  readonly #opened: BlobFile;
  readonly #start: number;
  readonly #end: number;
  override readonly size: number;
  readonly #tail: Tail | undefined;

  constructor(opened: BlobFile, start: number, end: number, tail?: Tail) {
    super([]);
    [this.#opened, this.#start, this.#end, this.#tail] = [opened, start, end, tail];
    this.size = end - start;
  }

  /** A view of the whole file in which other bytes follow from a position on. */
  withTail(at: number, bytes: Uint8Array): FileBlob {
    return new FileBlob(this.#opened, 0, at + bytes.length, { at, bytes });
  }

  override slice(start = 0, end = this.size): FileBlob {
    const from = Math.min(this.#start + Math.max(0, start), this.#end);
    const to = Math.max(from, Math.min(this.#start + end, this.#end));
    return new FileBlob(this.#opened, from, to, this.#tail);
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    const { file, handle, counter, sums } = this.#opened;
    const tail = this.#tail;
    const stored = tail ? bytes.subarray(0, Math.max(0, tail.at - this.#start)) : bytes;
    counter.fetches++;
    counter.bytes += stored.length;
    try {
      await readInto(handle, file, stored, this.#start);
      await sums.check(stored, this.#start);
    } catch (error) {
      counter.failure = error;
      throw error;
    }
    if (tail !== undefined && stored.length < bytes.length) {
      const from = this.#start + stored.length - tail.at;
      bytes.set(tail.bytes.subarray(from, this.#end - tail.at), stored.length);
    }
    return bytes.buffer;
  }
}
