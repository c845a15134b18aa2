import { DataError } from '../../../engine/errors.ts';
import { fileProblem } from '../../files/file-problem.ts';
import type { PageSums } from '../pages/page-sums.ts';
import type { FetchCounter, RandomAccess } from '../random-access.ts';

/** Bytes that replace bytes of the file. */
interface Patch {
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
  readonly #patch: Patch | undefined;

  constructor(opened: BlobFile, start: number, end: number, patch?: Patch) {
    super([]);
    [this.#opened, this.#start, this.#end, this.#patch] = [opened, start, end, patch];
    this.size = end - start;
  }

  /** A view of the file in which some bytes are replaced. */
  patched(at: number, bytes: Uint8Array): FileBlob {
    return new FileBlob(this.#opened, this.#start, this.#end, { at, bytes });
  }

  override slice(start = 0, end = this.size): FileBlob {
    const from = Math.min(this.#start + Math.max(0, start), this.#end);
    const to = Math.max(from, Math.min(this.#start + end, this.#end));
    return new FileBlob(this.#opened, from, to, this.#patch);
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size);
    const { file, counter, sums } = this.#opened;
    counter.fetches++;
    counter.bytes += bytes.length;
    try {
      for (let done = 0; done < bytes.length;) {
        const bytesRead = await this.#readInto(bytes, done);
        if (bytesRead === 0)
          throw new DataError('the file became shorter while it was read', { phase: 'read', file });
        done += bytesRead;
      }
      await sums.check(bytes, this.#start);
    } catch (error) {
      counter.failure = error;
      throw error;
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
    const { handle, file } = this.#opened;
    try {
      return (await handle.read(bytes, done, bytes.length - done, this.#start + done)).bytesRead;
    } catch (error) {
      throw fileProblem(error, 'read', file);
    }
  }
}
