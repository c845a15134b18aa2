import type { RangedFile } from './arrow/arrow-file.ts';

const BLOCK = 1 << 14;

/** A file whose bytes are read in blocks, each once: neighbouring values share a request. */
export class CachedFile implements RangedFile {
  readonly url: string;
  readonly byteLength: number;
  readonly #file: RangedFile;
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  constructor(file: RangedFile) {
    this.#file = file;
    [this.url, this.byteLength] = [file.url, file.byteLength];
  }

  async slice(start: number, end = this.byteLength): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(Math.max(0, end - start));
    if (bytes.length === 0) return bytes.buffer;
    const [first, last] = [Math.floor(start / BLOCK), Math.floor((end - 1) / BLOCK)];
    this.#readMissing(first, last);
    // Blocks whose requests fail are removed from the map, so all of them are looked up before the first wait.
    const blocks = Array.from({ length: last - first + 1 }, (_, k) => this.#blocks.get(first + k));
    (await Promise.all(blocks)).forEach((own, k) => {
      const at = (first + k) * BLOCK;
      bytes.set((own as Uint8Array).subarray(Math.max(0, start - at), end - at), Math.max(0, at - start));
    });
    return bytes.buffer;
  }

  /** Sends one request for each run of blocks that were not read. */
  #readMissing(first: number, last: number): void {
    for (let block = first; block <= last; block++) {
      if (this.#blocks.has(block)) continue;
      let to = block + 1;
      while (to <= last && !this.#blocks.has(to)) to++;
      this.#read(block, to);
      block = to - 1;
    }
  }

  #read(from: number, to: number): void {
    const bytes = this.#file
      .slice(from * BLOCK, Math.min(this.byteLength, to * BLOCK))
      .then((read) => new Uint8Array(read));
    for (let block = from; block < to; block++) {
      const own = bytes.then((all) => all.subarray((block - from) * BLOCK, (block - from + 1) * BLOCK));
      this.#blocks.set(block, own);
      own.catch(() => this.#blocks.delete(block));
    }
  }
}
