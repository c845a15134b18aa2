import type { AsyncBuffer } from 'hyparquet/src/types.js';
import { DataError, UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';

/** Sends the requests; by default the page's own fetch. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface RemoteOptions {
  readonly fetch: Fetch;
  readonly signal: AbortSignal | undefined;
}

/** Bytes of the first request, at the end of the file: most footers are shorter. */
const TAIL_BYTES = 1 << 16;

/** A file that the server does not have, and what it answers. */
export interface MissingFile {
  readonly missing: string;
}

/** A response with its bytes, and the first of them in the file. */
interface Received {
  readonly bytes: ArrayBuffer;
  readonly from: number;
  readonly total: number;
  readonly version: string;
}

/**
 * A file on a web server, read by ranges of bytes. Every answer's place in the file is compared with the
 * request. If the server ignores ranges, sends other ones, or does not let the page see them, the whole file is
 * read. Throws DataError if an answer is cut short, if it is a page in place of the file, or if the file has
 * another length or version than at the first request.
 */
export class RemoteFile implements AsyncBuffer {
  readonly url: string;
  readonly byteLength: number;
  #options: RemoteOptions;
  readonly #first: Received;

  private constructor(url: string, options: RemoteOptions, first: Received) {
    [this.url, this.#options, this.#first] = [url, options, first];
    this.byteLength = first.total;
  }

  /** Opens a file, or returns why the server has none at this URL. */
  static async open(url: string, options: RemoteOptions): Promise<RemoteFile | MissingFile> {
    const response = await request(url, options, `bytes=-${TAIL_BYTES}`);
    if (response.status === 404 || response.status === 410)
      return { missing: `the server answers ${response.status}` };
    const answer = (await received(url, response, options.signal)) ?? (await wholeFile(url, options));
    if (isPage(response, answer)) return { missing: 'the server sent a page (text/html) in its place' };
    const { total } = answer;
    if (total === 0) throw problem(url, 'the file is empty or was cut short', 'Copy the model again');
    const tail = Math.max(0, total - TAIL_BYTES);
    // Some servers send the first bytes when they are asked for the last ones.
    const first = reaches(answer, tail, total) ? answer : await rangeOf(url, options, tail, total);
    return new RemoteFile(url, options, first);
  }

  /** Later requests are not cancelled by the signal of `open`. */
  forgetSignal(): void {
    this.#options = { ...this.#options, signal: undefined };
  }

  /** `signal`: cancels this request; by default the signal of `open` does. */
  async slice(start: number, end = this.byteLength, signal?: AbortSignal): Promise<ArrayBuffer> {
    const { bytes, from } = this.#first;
    if (start >= from) return bytes.slice(start - from, end - from);
    if (end <= from) return this.#read(start, end, signal);
    // The end of the range has arrived with the first request.
    const joined = new Uint8Array(end - start);
    joined.set(new Uint8Array(await this.#read(start, from, signal)));
    joined.set(new Uint8Array(bytes, 0, end - from), from - start);
    return joined.buffer;
  }

  async #read(start: number, end: number, signal = this.#options.signal): Promise<ArrayBuffer> {
    const options = { ...this.#options, signal };
    const { total, version } = this.#first;
    const found = await rangeOf(this.url, options, start, end);
    if (found.total !== total || (version !== '' && found.version !== '' && found.version !== version))
      throw problem(this.url, 'the file was changed while it was read', 'Open the model again');
    return found.bytes.slice(start - found.from, end - found.from);
  }

  /** The whole file as text. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.slice(0));
  }
}

/** The file, whose requests this signal cancels. */
export function cancelledBy(file: RangedFile, signal: AbortSignal): RangedFile {
  const { url, byteLength } = file;
  return { url, byteLength, slice: (start, end) => file.slice(start, end, signal) };
}

export function problem(url: string, summary: string, advice?: string, cause?: unknown): DataError {
  return new DataError(summary, { phase: 'open', file: url, advice, cause });
}

/** True for the page that servers of single-page applications send for a file that they do not have. */
function isPage({ headers }: Response, { from, bytes }: Received): boolean {
  const isHtml = /^text\/html\b/i.test(headers.get('content-type') ?? '');
  return isHtml && (from > 0 || new TextDecoder().decode(bytes.slice(0, 100)).trimStart().startsWith('<'));
}

/** True if an answer contains the bytes start .. end - 1. */
function reaches({ from, bytes }: Received, start: number, end: number): boolean {
  return from <= start && from + bytes.byteLength >= end;
}

/** The bytes start .. end - 1, or the whole file from a server that sends other bytes. */
async function rangeOf(url: string, options: RemoteOptions, start: number, end: number): Promise<Received> {
  const response = await request(url, options, `bytes=${start}-${end - 1}`);
  const found = await received(url, response, options.signal);
  return found !== undefined && reaches(found, start, end) ? found : wholeFile(url, options);
}

async function request(url: string, { fetch, signal }: RemoteOptions, range?: string): Promise<Response> {
  try {
    return await fetch(url, { signal, headers: range === undefined ? {} : { Range: range } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw problem(
      url,
      'the request failed',
      'Check the connection, and that the server permits requests of this page (CORS)',
      error,
    );
  }
}

/**
 * Reads the body. Undefined if it is a part of the file and the page cannot see which one, and if the server has
 * no such part.
 */
async function received(
  url: string,
  response: Response,
  signal: AbortSignal | undefined,
): Promise<Received | undefined> {
  const { status, headers } = response;
  if (status === 416) {
    await response.body?.cancel();
    return undefined;
  }
  if (status !== 200 && status !== 206)
    throw problem(url, `the server answers ${status} ${response.statusText}`.trim(), 'Check the URL');
  const version = headers.get('etag') ?? headers.get('last-modified') ?? '';
  if (status === 206) {
    const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '');
    if (range === null) {
      await response.body?.cancel();
      return undefined;
    }
    const [from, last, total] = range.slice(1).map(Number);
    return { bytes: await bodyOf(url, response, last + 1 - from, signal), from, total, version };
  }
  const length = headers.get('content-length');
  const encoded = headers.has('content-encoding');
  const whole = encoded || length === null ? undefined : Number(length);
  const bytes = await bodyOf(url, response, whole, signal);
  return { bytes, from: 0, total: bytes.byteLength, version };
}

async function bodyOf(
  url: string,
  response: Response,
  length: number | undefined,
  signal: AbortSignal | undefined,
): Promise<ArrayBuffer> {
  let bytes: ArrayBuffer;
  try {
    bytes = await response.arrayBuffer();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw problem(url, 'the connection broke off while the file was read', 'Open the model again', error);
  }
  if (length !== undefined && bytes.byteLength !== length)
    throw problem(
      url,
      `the file is cut short: ${bytes.byteLength} of ${length} bytes arrived`,
      'Open the model again',
    );
  return bytes;
}

async function wholeFile(url: string, options: RemoteOptions): Promise<Received> {
  const response = await request(url, options);
  const found = await received(url, response, options.signal);
  if (found !== undefined) return found;
  throw response.status === 416
    ? problem(url, 'the file is empty or was cut short', 'Copy the model again')
    : problem(url, 'the server sends a part of the file to a request for all of it');
}

/** An address, relative to the page. Throws UsageError for another value. */
export function addressOf(method: string, url: string | URL, advice: string): string {
  if (typeof url !== 'string' && !(url instanceof URL))
    throw new UsageError(`${method} takes the URL, got ${shown(url)}`, { advice });
  const base = (globalThis as { readonly location?: { readonly href: string } }).location?.href;
  return new URL(url, base).href;
}

/** A file that is read by ranges of bytes. */
export interface RangedFile {
  readonly url: string;
  readonly byteLength: number;
  /** `signal`: cancels the request. */
  slice(start: number, end?: number, signal?: AbortSignal): Promise<ArrayBuffer>;
}

/** Bytes `from` .. `to - 1` of a file. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Requests that cover the ranges, in ascending order: ranges with at most `gap` bytes between them share one,
 * since a request takes longer than these bytes.
 */
export function joinRanges(ranges: readonly ByteRange[], gap: number): ByteRange[] {
  const joined: { from: number; to: number }[] = [];
  for (const { from, to } of ranges.filter((one) => one.from < one.to).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last !== undefined && from - last.to <= gap) last.to = Math.max(last.to, to);
    else joined.push({ from, to });
  }
  return joined;
}

/** Reads ranges of a file, in few requests; each result has memory of its own. */
export async function readRanges(
  file: RangedFile,
  ranges: readonly ByteRange[],
  gap: number,
  signal: AbortSignal | undefined,
): Promise<ArrayBuffer[]> {
  const requests = joinRanges(ranges, gap);
  const read = await Promise.all(requests.map(({ from, to }) => file.slice(from, to, signal)));
  return ranges.map(({ from, to }) => {
    if (from === to) return new ArrayBuffer(0);
    const at = requests.findLastIndex((request) => request.from <= from);
    return read[at].slice(from - requests[at].from, to - requests[at].from);
  });
}
