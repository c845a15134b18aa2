import { fileProblem } from '../../files/file-problem.ts';
import { readInto } from '../footer-file.ts';
import type { FetchCounter, RandomAccess } from '../random-access.ts';
import { HEADER_BYTES } from './page-header.ts';

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
      await this.#readInto(this.#bytes.subarray(kept, all), this.#start + at + kept);
      [this.#from, this.#length] = [at, all];
    }
    return this.#bytes.subarray(at - this.#from, at - this.#from + length);
  }

  /** Releases the window to the next reader. */
  giveBack(): void {
    if (this.#bytes.length === WINDOW && idle.length < MOST_IDLE) idle.push(this.#bytes);
    [this.#bytes, this.#length] = [new Uint8Array(0), 0];
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
