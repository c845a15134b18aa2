import { crc32 } from 'node:zlib';
import { formatBytes } from '../../engine/format.ts';
import {
  type Answer,
  ask,
  bodyOf,
  changed,
  close,
  isUnversioned,
  lengthOf,
  type Place,
  placeOf,
  type Problem,
  problemOf,
  refuse,
  requireSame,
  type UrlVersion,
  type UrlVersions,
  versionOf,
} from './request.ts';

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
      const problem = rangeProblem(this.#url, range);
      requireSame(this.#tail, fetched, problem);
      if (fetched.bytes.length !== range.to - range.from)
        throw problem(`the server sends ${fetched.bytes.length} bytes`);
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

/** A part of a file on a web server, and the version of the file. */
interface FetchedRange extends UrlVersion {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly start: number;
  readonly size: number;
}

/** Bytes from..to (exclusive), or the last bytes of a file. */
type ByteRange = { readonly from: number; readonly to: number } | { readonly last: number };

/** A server without support for ranges sends whole files; larger ones than this are refused. */
const WHOLE_BYTES = 1 << 30;

const DOWNLOAD = 'Download the file first';

/**
 * Fetches a range of a file's bytes with a GET request. Retries twice if the connection breaks or the server is
 * busy. If the last bytes are requested, a server that sends others is asked for the same bytes by their
 * numbers, and of a server that ignores ranges the whole file is taken. Throws DataError that names the URL and
 * the bytes, UsageError for an invalid URL. `asked`: the bytes to ask for.
 */
export async function fetchRange(
  url: string,
  range: ByteRange,
  asked: ByteRange | 'whole' = range,
): Promise<FetchedRange> {
  const problem = rangeProblem(url, range);
  const found = await ask(url, rangeHeader(asked), problem, async (answer) => {
    const { response } = answer;
    const version = versionOf(response);
    const wholeDoes = 'last' in range;
    if (response.status === 200) return { ...(await wholeFile(answer, wholeDoes, problem)), ...version };
    const place = placeOf(response);
    if (response.status !== 206 && place?.size !== 0) return refuse(response, problem);
    if (place === undefined)
      throw problem(
        'the server does not report which part of the file it sends, or how large the file is',
        DOWNLOAD,
      );
    const { start, end, size } = place;
    const isAsked = asked !== 'whole' && isRange(place, asked);
    if (size === 0) {
      await close(answer);
      return { bytes: new Uint8Array(0), start, size, ...version };
    }
    if (!isAsked && wholeDoes && asked !== 'whole') {
      await close(answer);
      return 'last' in asked ? { from: Math.max(0, size - asked.last), to: size } : 'whole';
    }
    if (!isAsked) throw problem(`the server sends bytes ${start}-${end} of ${size} instead`, DOWNLOAD);
    const length = end - start + 1;
    const declared = lengthOf(response) ?? length;
    if (declared !== length)
      throw problem(`the server sends bytes ${start}-${end} and declares ${declared} bytes`, DOWNLOAD);
    return { bytes: await bodyOf(answer, { expected: length }), start, size, ...version };
  });
  return typeof found === 'object' && 'bytes' in found ? found : fetchRange(url, range, found);
}

/** Errors that name the URL and the bytes. */
function rangeProblem(url: string, range: ByteRange): Problem {
  const bytes = 'last' in range ? `the last ${range.last} bytes` : `bytes ${range.from}-${range.to - 1}`;
  return problemOf(url, bytes);
}

function rangeHeader(range: ByteRange | 'whole'): Record<string, string> {
  if (range === 'whole') return {};
  return { Range: 'last' in range ? `bytes=-${range.last}` : `bytes=${range.from}-${range.to - 1}` };
}

function isRange({ start, end, size }: Place, range: ByteRange): boolean {
  return 'last' in range
    ? start === Math.max(0, size - range.last) && end === size - 1
    : start === range.from && end - start < range.to - range.from;
}

/** The whole file, from the response of a server that ignores ranges. */
async function wholeFile(answer: Answer, does: boolean, problem: Problem) {
  if (!does) throw problem('the server ignores ranges: it answers 200 and the whole file, not 206', DOWNLOAD);
  const isTooLarge = (lengthOf(answer.response) ?? 0) > WHOLE_BYTES;
  const bytes = isTooLarge ? undefined : await bodyOf(answer, { enough: WHOLE_BYTES + 1 });
  if (bytes !== undefined && bytes.length <= WHOLE_BYTES) return { bytes, start: 0, size: bytes.length };
  throw problem(
    `the server ignores ranges, and the whole file has more than ${formatBytes(WHOLE_BYTES)}`,
    DOWNLOAD,
  );
}
