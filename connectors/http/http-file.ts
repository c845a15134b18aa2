import { crc32 } from 'node:zlib';
import { fetchRange, httpProblem } from './fetch-range.ts';
import type { FetchedRange } from './fetch-range.ts';
import { problemOf } from './request.ts';
import { changed, isUnversioned, type UrlVersions } from './url-versions.ts';

/** Bytes fetched when a file is opened. They give its size, and nearly always contain the whole footer. */
const TAIL = 1 << 16;
/**
 * Ranges with at most this gap between them are fetched in one request, if all gaps together are less than a
 * tenth of the wanted bytes.
 */
const NEAR = 1 << 16;

interface PendingRange {
  readonly from: number;
  readonly to: number;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A file on a web server, read by ranges. Its last bytes stay in memory. Neighbouring ranges that are
 * requested at the same time share a request. A file that changes between requests is an error.
 */
export class HttpFile {
  readonly #url: string;
  readonly #tail: FetchedRange;
  #pending: PendingRange[] = [];

  private constructor(url: string, tail: FetchedRange) {
    this.#url = url;
    this.#tail = tail;
  }

  /**
   * Throws DataError when the server has no such file or does not serve ranges, or where the file is of
   * another version than before.
   */
  static async open(url: string, versions?: UrlVersions): Promise<HttpFile> {
    const tail = await fetchRange(url, { last: TAIL });
    const { etag, modified, size } = tail;
    const version = { etag, modified, size, ...(isUnversioned(tail) && { tail: crc32(tail.bytes) }) };
    versions?.require(url, version, problemOf(url, 'the whole file'));
    return new HttpFile(url, tail);
  }

  /**
   * Called after the last read. If the server reports no version of the file, its last bytes are read again
   * and compared. Throws DataError for a file that changed.
   */
  async verify(): Promise<void> {
    // If the whole file is in memory, it came in a single response and is consistent.
    if (!isUnversioned(this.#tail) || this.#tail.start === 0) return;
    const { size, bytes } = await fetchRange(this.#url, { last: TAIL });
    if (size !== this.#tail.size || Buffer.compare(bytes, this.#tail.bytes) !== 0)
      throw changed(problemOf(this.#url, `the last ${bytes.length} bytes`));
  }

  async stat(): Promise<{ size: number }> {
    return { size: this.#tail.size };
  }

  async read(
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesRead: number }> {
    const to = Math.min(position + length, this.#tail.size);
    if (to <= position) return { bytesRead: 0 };
    bytes.set(await this.#range(position, to), offset);
    return { bytesRead: to - position };
  }

  async close(): Promise<void> {}

  #range(from: number, to: number): Promise<Uint8Array> | Uint8Array {
    const { start, bytes } = this.#tail;
    if (from >= start) return bytes.subarray(from - start, to - start);
    return new Promise((resolve, reject) => {
      // Waits for the end of this turn of the event loop, so that ranges requested in it can share a request.
      if (this.#pending.length === 0) setImmediate(() => this.#fetchPending());
      this.#pending.push({ from, to, resolve, reject });
    });
  }

  #fetchPending(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const group of groupRanges(pending)) void this.#fetchGroup(group);
  }

  async #fetchGroup(group: readonly PendingRange[]): Promise<void> {
    try {
      const range = { from: group[0].from, to: Math.max(...group.map(({ to }) => to)) };
      const fetched = await fetchRange(this.#url, range);
      const { size, etag, modified } = this.#tail;
      if (fetched.size !== size || fetched.etag !== etag || fetched.modified !== modified)
        throw changed((summary, advice) => httpProblem(this.#url, range, summary, advice));
      if (fetched.bytes.length !== range.to - range.from)
        throw httpProblem(this.#url, range, `the server sends ${fetched.bytes.length} bytes`);
      for (const { from, to, resolve } of group)
        resolve(fetched.bytes.subarray(from - range.from, to - range.from));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

/** Groups ranges to fetch together, with few unwanted bytes each. A pure function. */
export function groupRanges<R extends { readonly from: number; readonly to: number }>(
  ranges: readonly R[],
): R[][] {
  const groups: R[][] = [];
  let [end, wanted, unwanted] = [0, 0, 0];
  for (const range of [...ranges].sort((a, b) => a.from - b.from || a.to - b.to)) {
    const gap = Math.max(0, range.from - end);
    const added = Math.max(0, range.to - Math.max(range.from, end));
    if (groups.length > 0 && gap <= NEAR && (unwanted + gap) * 10 <= wanted + added) {
      groups.at(-1)?.push(range);
      [wanted, unwanted] = [wanted + added, unwanted + gap];
    } else {
      groups.push([range]);
      [wanted, unwanted] = [range.to - range.from, 0];
      end = 0;
    }
    end = Math.max(end, range.to);
  }
  return groups;
}
