import { crc32 } from 'node:zlib';
import type { Problem } from './request.ts';

/**
 * The first bytes of a file, up to this number, are compared in each pass, even if the pass does not read to
 * the end.
 */
const HEAD = 1 << 16;

/** The version of a file on a web server, as far as an answer declares it. */
export interface UrlVersion {
  readonly etag: string | null;
  readonly modified: string | null;
  /** Bytes of the whole file. */
  readonly size: number | undefined;
  /** The checksum of its last bytes, if the server sends neither of the first two. */
  readonly tail?: number;
}

/** The bytes of a stream: their number and checksum. */
type Sum = { readonly length: number; readonly sum: number };

interface Sums {
  /** Of the first 64 KiB. */
  head?: Sum;
  /** Of a whole stream. */
  whole?: Sum;
}

/** True if a server sends no version of a file, so that only its bytes can show a change. */
export function isUnversioned({ etag, modified }: Pick<UrlVersion, 'etag' | 'modified'>): boolean {
  return etag === null && modified === null;
}

/** Versions of a source's files on web servers: all answers for a file must have the version of the first. */
export class UrlVersions {
  readonly #versions = new Map<string, UrlVersion>();
  readonly #sums = new Map<string, Sums>();

  /** Throws the error of a changed file if a response has another version than the first one. */
  require(url: string, version: UrlVersion, problem: Problem): void {
    const first = this.#versions.get(url);
    if (first === undefined) this.#versions.set(url, version);
    else if (!isSame(first, version)) throw changed(problem);
  }

  /**
   * Passes the bytes of a stream on, and compares them with earlier streams of the same file: the first 64
   * KiB, and all bytes if both streams were read to the end. Throws the error of a changed file.
   */
  async *compared(
    url: string,
    chunks: AsyncIterable<Uint8Array>,
    problem: Problem,
  ): AsyncGenerator<Uint8Array> {
    const sums = this.#sums.get(url) ?? {};
    this.#sums.set(url, sums);
    const compare = (part: keyof Sums, found: Sum) => {
      const first = (sums[part] ??= found);
      if (first.length !== found.length || first.sum !== found.sum) throw changed(problem);
    };
    let [length, sum] = [0, 0];
    for await (const chunk of chunks) {
      const rest = Math.max(0, HEAD - length);
      if (length < HEAD && length + chunk.length >= HEAD)
        compare('head', { length: HEAD, sum: crc32(chunk.subarray(0, rest), sum) });
      sum = crc32(chunk, sum);
      length += chunk.length;
      yield chunk;
    }
    if (length < HEAD) compare('head', { length, sum });
    compare('whole', { length, sum });
  }
}

function isSame(first: UrlVersion, other: UrlVersion): boolean {
  return (
    first.etag === other.etag &&
    first.modified === other.modified &&
    first.tail === other.tail &&
    // A server need not report the length of the file in each response.
    (first.size ?? other.size) === (other.size ?? first.size)
  );
}

/** The error of a file that changed. */
export function changed(problem: Problem): Error {
  return problem(
    'the file changed while it was read',
    'Read it again, or download it first where the server makes it anew for each request',
  );
}
