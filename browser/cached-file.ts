import { type RangedFile, type ByteRange, joinRanges } from './remote-file.ts';
import { RequestCache, SharedRequest } from './shared-request.ts';

/** Bytes of names or factors that stay in memory. */
const MOST_BYTES = 1 << 24;

/** Blocks of one or several files. */
export class BlockCache {
  readonly blockBytes: number;
  readonly blocks: RequestCache<string, Uint8Array>;
  #files = 0;

  constructor(blockBytes: number, most = MOST_BYTES) {
    this.blockBytes = blockBytes;
    this.blocks = new RequestCache(most);
  }

  open(file: RangedFile): CachedFile {
    return new CachedFile(file, this, this.#files++);
  }
}

/** Blocks between two that are read in the same request, if they are not more than this number. */
const GAP_BLOCKS = 4;

/** A file that is read in blocks, which are kept: neighbouring values share a request. */
export class CachedFile implements RangedFile {
  readonly url: string;
  readonly byteLength: number;
  readonly #file: RangedFile;
  readonly #cache: BlockCache;
  readonly #number: number;

  constructor(file: RangedFile, cache: BlockCache, number: number) {
    [this.#file, this.#cache, this.#number] = [file, cache, number];
    [this.url, this.byteLength] = [file.url, file.byteLength];
  }

  async slice(start: number, end = this.byteLength, signal?: AbortSignal): Promise<ArrayBuffer> {
    if (end <= start) return new ArrayBuffer(0);
    return (await this.gather([{ from: start, to: end }], signal))[0].buffer;
  }

  /** The bytes of several ranges. Blocks near each other are read in one request. */
  async gather(
    ranges: readonly ByteRange[],
    signal?: AbortSignal,
  ): Promise<readonly Uint8Array<ArrayBuffer>[]> {
    const size = this.#cache.blockBytes;
    const numbers = new Set<number>();
    for (const { from, to } of ranges)
      for (let block = Math.floor(from / size); block * size < to; block++) numbers.add(block);
    const requests = this.#requests([...numbers]);
    const read = new Map<number, Uint8Array>();
    await Promise.all(
      Array.from(requests, async ([block, request]) => read.set(block, await request.wait(signal))),
    );
    return ranges.map(({ from, to }) => {
      const bytes = new Uint8Array(to - from);
      for (let block = Math.floor(from / size); block * size < to; block++) {
        const own = read.get(block) as Uint8Array;
        const at = block * size;
        bytes.set(own.subarray(Math.max(0, from - at), to - at), Math.max(0, at - from));
      }
      return bytes;
    });
  }

  /** The requests of blocks, of which those are sent that are not in the cache. */
  #requests(blocks: readonly number[]): Map<number, SharedRequest<Uint8Array>> {
    const { blocks: cache } = this.#cache;
    const found = new Map<number, SharedRequest<Uint8Array>>();
    const missing: number[] = [];
    for (const block of blocks) {
      const request = cache.get(this.#key(block));
      if (request) found.set(block, request);
      else missing.push(block);
    }
    const single = missing.map((block) => ({ from: block, to: block + 1 }));
    for (const { from, to } of joinRanges(single, GAP_BLOCKS)) {
      const asked = missing.filter((block) => from <= block && block < to);
      for (const [block, request] of this.#send(from, to, asked)) {
        found.set(block, request);
        cache.set(this.#key(block), request, this.#cache.blockBytes);
      }
    }
    return found;
  }

  /** One request for blocks from .. to - 1. It is cancelled when the readers of all asked blocks are. */
  #send(
    from: number,
    to: number,
    asked: readonly number[],
  ): (readonly [number, SharedRequest<Uint8Array>])[] {
    const size = this.#cache.blockBytes;
    const all = new SharedRequest((signal) =>
      this.#file.slice(from * size, Math.min(this.byteLength, to * size), signal),
    );
    return asked.map((block) => {
      const at = (block - from) * size;
      const cut = async (signal: AbortSignal) =>
        new Uint8Array((await all.wait(signal)).slice(at, at + size));
      return [block, new SharedRequest(cut)] as const;
    });
  }

  #key(block: number): string {
    return `${this.#number}:${block}`;
  }
}
