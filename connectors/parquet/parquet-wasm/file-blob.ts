import { DataError } from '../../../engine/errors.ts';
import { fileProblem } from '../../files/file-problem.ts';
import type { FetchCounter, RandomAccess } from '../random-access.ts';

/** Bytes that stand in place of those of the file. */
interface Patch {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/**
 * A Blob over an open file of the disk or of a web server: only the slices that the decoder asks for are
 * read. The owner of the handle closes it. Faster than `fs.openAsBlob`, and an I/O error keeps its meaning.
 *
 */
export class FileBlob extends Blob {
  readonly #handle: RandomAccess;
  readonly #file: string;
  readonly #start: number;
  readonly #end: number;
  override readonly size: number;
  readonly #counter: FetchCounter;
  readonly #patch: Patch | undefined;

  constructor(
    handle: RandomAccess,
    file: string,
    start: number,
    end: number,
    counter: FetchCounter = { fetches: 0, bytes: 0 },
    patch?: Patch,
  ) {
    super([]);
    this.#handle = handle;
    this.#file = file;
    this.#start = start;
    this.#end = end;
    this.size = end - start;
    this.#counter = counter;
    this.#patch = patch;
  }

  /** The same file with other bytes at a place. */
  patched(at: number, bytes: Uint8Array): FileBlob {
    return new FileBlob(this.#handle, this.#file, this.#start, this.#end, this.#counter, { at, bytes });
  }

  override slice(start = 0, end = this.size): FileBlob {
    const from = Math.min(this.#start + Math.max(0, start), this.#end);
    const to = Math.max(from, Math.min(this.#start + end, this.#end));
    return new FileBlob(this.#handle, this.#file, from, to, this.#counter, this.#patch);
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    this.#counter.fetches++;
    this.#counter.bytes += bytes.length;
    let done = 0;
    while (done < bytes.length) {
      const bytesRead = await this.#readInto(bytes, done);
      if (bytesRead === 0) {
        this.#counter.failure = new DataError('the file became shorter while it was read', {
          phase: 'read',
          file: this.#file,
        });
        throw this.#counter.failure;
      }
      done += bytesRead;
    }
    if (this.#patch !== undefined) this.#overlay(bytes, this.#patch);
    return bytes.buffer;
  }

  #overlay(target: Uint8Array, { at, bytes }: Patch): void {
    for (const [i, byte] of bytes.entries()) {
      const position = at + i - this.#start;
      if (position >= 0 && position < target.length) target[position] = byte;
    }
  }

  async #readInto(bytes: Uint8Array, done: number): Promise<number> {
    try {
      return (await this.#handle.read(bytes, done, bytes.length - done, this.#start + done)).bytesRead;
    } catch (error) {
      this.#counter.failure = fileProblem(error, 'read', this.#file);
      throw this.#counter.failure;
    }
  }
}
