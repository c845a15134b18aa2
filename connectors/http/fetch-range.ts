import { setTimeout as sleep } from 'node:timers/promises';
import { DataError, publicText } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { urlOf } from '../files/path-kinds.ts';
import { joinBytes } from '../files/stored-bytes.ts';

/** A part of a file on a web server. */
export interface FetchedRange {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly start: number;
  /** Bytes of the whole file. */
  readonly size: number;
  readonly etag: string | null;
}

/** Bytes from..to (exclusive), or the last bytes of a file. */
export type ByteRange = { readonly from: number; readonly to: number } | { readonly last: number };

/** Milliseconds between attempts; there is one more attempt than waits. */
const waits = [100, 400];
const IDLE_MILLISECONDS = 30_000;

/** A failure that another attempt may not meet. */
class Passing extends Error {}

/**
 * Sends one GET with a Range header. After a broken connection or an answer of a busy server it tries again, twice. Throws
 * DataError that names the URL and the bytes, UsageError for what is no URL.
 */
export async function fetchRange(url: string, range: ByteRange): Promise<FetchedRange> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await waitForOther(fetchOnce(url, range));
    } catch (error) {
      if (!(error instanceof Passing)) throw error;
      if (attempt === waits.length) throw httpProblem(url, range, `${error.message}, ${attempt + 1} times`, 'Check the connection and try again', error);
      await sleep(waits[attempt]);
    }
  }
}

/** An error that names the URL and the bytes. */
export function httpProblem(url: string, range: ByteRange, summary: string, advice?: string, cause?: unknown): DataError {
  return new DataError(`${summary} (${rangeText(range)})`, { phase: 'read', file: url, advice, cause });
}

/** The address and headers of a request: user and password of the URL go into a header, since addresses may not have them. */
function requestOf(url: string): { readonly address: URL; readonly headers: Record<string, string> } {
  const address = urlOf(url);
  const { username, password } = address;
  if (username === '' && password === '') return { address, headers: {} };
  [address.username, address.password] = ['', ''];
  return { address, headers: { Authorization: `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}` } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function rangeText(range: ByteRange): string {
  return 'last' in range ? `the last ${range.last} bytes` : `bytes ${range.from}-${range.to - 1}`;
}

async function fetchOnce(url: string, range: ByteRange): Promise<FetchedRange> {
  const header = 'last' in range ? `bytes=-${range.last}` : `bytes=${range.from}-${range.to - 1}`;
  const { address, headers } = requestOf(url);
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), IDLE_MILLISECONDS);
  try {
    const response = await fetch(address, { headers: { ...headers, Range: header, 'Accept-Encoding': 'identity' }, signal: idle.signal });
    if (response.status !== 206) {
      await response.body?.cancel();
      return refuse(url, range, response);
    }
    const place = contentRange(response);
    if (place === undefined) {
      await response.body?.cancel();
      throw httpProblem(url, range, 'the server does not tell which part of the file it sends, or how large the file is', 'Download the file first');
    }
    const expected = place.end - place.start + 1;
    if (!('last' in range) && (place.start !== range.from || expected > range.to - range.from)) {
      await response.body?.cancel();
      throw httpProblem(url, range, `the server sends bytes ${place.start}-${place.end} instead`);
    }
    const bytes = await readBody(response, expected, () => timer.refresh());
    return { bytes, start: place.start, size: place.size, etag: response.headers.get('etag') };
  } catch (error) {
    if (error instanceof DataError || error instanceof Passing) throw error;
    throw new Passing(`the connection failed: ${reason(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function refuse(url: string, range: ByteRange, { status, statusText, headers }: Response): FetchedRange {
  if (status === 200) throw httpProblem(url, range, 'the server ignores ranges: it answers 200 and the whole file, not 206', 'Download the file first');
  if (status === 404 || status === 410) throw httpProblem(url, range, `there is no such file on the server (${status})`, 'Check the URL');
  if (status === 401 || status === 403) throw httpProblem(url, range, `the server denies access (${status})`, 'Use a URL that needs no login, such as a signed one');
  // This is the answer to any range of an empty file.
  if (status === 416 && headers.get('content-range') === 'bytes */0') return { bytes: new Uint8Array(0), start: 0, size: 0, etag: headers.get('etag') };
  if (status === 429 || status >= 500) throw new Passing(`the server answers ${status} ${statusText}`.trim());
  throw httpProblem(url, range, `the server answers ${status} ${statusText}`.trim());
}

function contentRange({ headers }: Response): { start: number; end: number; size: number } | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '');
  if (match === null) return undefined;
  const [start, end, size] = match.slice(1).map(Number);
  return Number.isSafeInteger(size) && start <= end && end < size ? { start, end, size } : undefined;
}

/** Exactly the announced bytes: fewer come of a broken connection, more of a faulty server. */
async function readBody({ body }: Response, expected: number, onChunk: () => void): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    onChunk();
    const part = chunk as Uint8Array;
    parts.push(part);
    length += part.length;
    if (length > expected) throw new Passing(`the server sends more than the ${expected} bytes that it announced`);
  }
  if (length < expected) throw new Passing(`the connection broke off after ${length} of ${expected} bytes`);
  return joinBytes(parts);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return `nothing came for ${IDLE_MILLISECONDS / 1000} s`;
  return publicText(error.cause instanceof Error ? error.cause.message || error.cause.name : error.message);
}
