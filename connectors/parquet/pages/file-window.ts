import { fileProblem } from '../../files/file-problem.ts';
import { readInto } from '../footer-file.ts';
import type { FetchCounter } from '../parquet-wasm/file-blob.ts';
import type { RandomAccess } from '../random-access.ts';

/** Bytes that are read at a time. */
const WINDOW = 1 << 20;

/** The stored bytes of one column of a row group, a window at a time. */
export class FileWindow {
  readonly #handle: RandomAccess;
  readonly #file: string;
  readonly #counter: FetchCounter;
  readonly #start: number;
  readonly size: number;
  #bytes: Uint8Array = new Uint8Array(0);
  /** Place of the window's first byte. */
  #from = 0;

  constructor(handle: RandomAccess, file: string, counter: FetchCounter, { start, bytes }: { readonly start: number; readonly bytes: number }) {
    [this.#handle, this.#file, this.#counter, this.#start, this.size] = [handle, file, counter, start, bytes];
  }

  /** Bytes [at, at + length) of the column, until the next call. */
  async read(at: number, length: number): Promise<Uint8Array> {
    const kept = at < this.#from ? 0 : Math.max(0, this.#from + this.#bytes.length - at);
    if (kept < length) {
      const bytes = new Uint8Array(Math.min(Math.max(length, WINDOW), this.size - at));
      bytes.set(this.#bytes.subarray(this.#bytes.length - kept));
      await this.#readInto(bytes.subarray(kept), this.#start + at + kept);
      [this.#bytes, this.#from] = [bytes, at];
    }
    return this.#bytes.subarray(at - this.#from, at - this.#from + length);
  }

  async #readInto(bytes: Uint8Array, position: number): Promise<void> {
    try {
      await readInto(this.#handle, this.#file, bytes, position);
    } catch (error) {
      throw fileProblem(error, 'read', this.#file);
    }
    this.#counter.fetches++;
    this.#counter.bytes += bytes.length;
  }
}
