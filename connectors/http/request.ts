import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { DataError, publicText } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { decodedText, urlOf } from '../files/path-kinds.ts';

/** Milliseconds to wait between attempts. There is one attempt more than waits. */
const waits = [100, 400];

/**
 * Limits of the time to wait for a server. Each received byte extends the time, so a slow connection
 * succeeds. A server that sends only a byte every 20 s does not.
 */
export const patience = {
  /** Longest time without a byte, in milliseconds. */
  idle: 30_000,
  /**
   * Longest total time to wait for one response, in milliseconds, before it is extended by received bytes.
   */
  start: 60_000,
  /** This number of received bytes extends the time by one millisecond (8 KB/s). */
  bytes: 8,
};

/** A failure that may not occur again at the next attempt. */
export class TransientFailure extends Error {}

/** Makes an error that names the URL and the requested bytes. */
export type Problem = (summary: string, advice?: string, cause?: unknown) => DataError;

/** Errors that name the URL and the bytes. */
export function problemOf(url: string, bytes: string): Problem {
  return (summary, advice, cause) =>
    new DataError(`${summary} (${bytes})`, { phase: 'read', file: url, advice, cause });
}

/** A response whose headers have arrived but whose body has not been read. */
export interface Answer {
  readonly response: Response;
  /**
   * Waits for a part of the body within `patience`. `received`: bytes received before it. Throws
   * TransientFailure.
   */
  wait<Result>(part: Promise<Result>, received: number): Promise<Result>;
}

/**
 * Sends a GET, and twice again after a broken connection or the answer of a busy server. `use` reads the
 * answer, or closes it; if it throws, the connection is closed. Throws UsageError for an invalid URL.
 */
export async function ask<Result>(
  url: string,
  headers: Readonly<Record<string, string>>,
  problem: Problem,
  use: (answer: Answer) => Promise<Result>,
): Promise<Result> {
  const once = async () => {
    const answer = await get(url, headers);
    try {
      return await use(answer);
    } catch (error) {
      await close(answer);
      throw error;
    }
  };
  for (let attempt = 0; ; attempt++) {
    try {
      return await waitForOther(once());
    } catch (error) {
      if (!(error instanceof TransientFailure)) throw error;
      if (attempt === waits.length)
        throw problem(`${error.message}, ${attempt + 1} times`, 'Check the connection and try again', error);
      await sleep(waits[attempt]);
    }
  }
}

/** Sends one GET. User and password of the URL go into a header, since fetch refuses them in addresses. */
async function get(url: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const address = urlOf(url);
  const login = [address.username, address.password].map(decodedText).join(':');
  [address.username, address.password] = ['', ''];
  const authorization = { Authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  const ending = new AbortController();
  // Counts only the time of waiting for the server, not the reader's work between the parts.
  let waited = 0;
  const wait = async <Result>(part: Promise<Result>, received: number): Promise<Result> => {
    const left = patience.start + received / patience.bytes - waited;
    const [milliseconds, summary] =
      left < patience.idle
        ? [left, `the server is too slow: ${received} bytes in ${shown(waited + left)}`]
        : [patience.idle, `nothing arrived for ${shown(patience.idle)}`];
    const started = performance.now();
    const timer = setTimeout(() => ending.abort(new TransientFailure(summary)), Math.max(0, milliseconds));
    try {
      return await part;
    } catch (error) {
      throw error instanceof TransientFailure
        ? error
        : new TransientFailure(`the connection failed: ${reason(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
      waited += performance.now() - started;
    }
  };
  const all = { ...(login !== ':' && authorization), ...headers, 'Accept-Encoding': 'identity' };
  return { response: await wait(fetch(address, { headers: all, signal: ending.signal }), 0), wait };
}

export async function close({ response }: Answer): Promise<void> {
  await response.body?.cancel().catch(() => undefined);
}

/**
 * Chunks of an answer's body, which must have the declared length. Leaving the loop early closes the
 * connection. Throws TransientFailure.
 */
export async function* chunksOf(
  { response, wait }: Answer,
  expected = lengthOf(response),
): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  let received = 0;
  const read = async () => reader && wait(reader.read(), received);
  try {
    for (let next = await read(); next !== undefined && !next.done; next = await read()) {
      received += next.value.length;
      if (received > (expected ?? received))
        throw new TransientFailure(`the server sends more than the ${expected} bytes that it announced`);
      yield next.value;
    }
    if (received < (expected ?? received))
      throw new TransientFailure(`the connection broke off after ${received} of ${expected} bytes`);
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** The bytes of an answer's body: all, or `enough` of them. */
export async function bodyOf(
  answer: Answer,
  { expected, enough = Infinity }: { readonly expected?: number; readonly enough?: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of chunksOf(answer, expected)) {
    parts.push(part);
    length += part.length;
    if (length >= enough) break;
  }
  const all = Buffer.concat(parts);
  return new Uint8Array(all.buffer, all.byteOffset, all.length);
}

/** First and last byte of an answer, and bytes of the whole file. */
export interface Place {
  readonly start: number;
  readonly end: number;
  readonly size: number;
}

/**
 * The range that an answer declares; no bytes of 0 for any range of an empty file. Undefined if it declares none
 * or an impossible one.
 */
export function placeOf({ status, headers }: Response): Place | undefined {
  const declared = headers.get('content-range') ?? '';
  if (status === 416 && declared === 'bytes */0') return { start: 0, end: -1, size: 0 };
  const [, start, end, size] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(declared) ?? []).map(Number);
  // Numbers above 2^53 would not be exact.
  return Number.isSafeInteger(size) && start <= end && end < size ? { start, end, size } : undefined;
}

/** Throws the error for a response with a status that means no data. */
export function refuse({ status, statusText }: Response, problem: Problem): never {
  if (status === 404 || status === 410)
    throw problem(`there is no such file on the server (${status})`, 'Check the URL');
  if (status === 401 || status === 403)
    throw problem(
      `the server denies access (${status})`,
      'Use a URL that needs no login, such as a signed one',
    );
  const answer = `the server answers ${status} ${statusText}`.trim();
  throw status === 429 || status >= 500 ? new TransientFailure(answer) : problem(answer);
}

/**
 * Length of the body by the answer's headers; undefined if it is not declared, or if the body is compressed
 * for transfer.
 */
export function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-length') ?? '';
  return headers.has('content-encoding') || !/^\d+$/.test(length) ? undefined : Number(length);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return publicText(error.cause instanceof Error ? error.cause.message || error.cause.name : error.message);
}

function shown(milliseconds: number): string {
  return `${Math.round(milliseconds) / 1000} s`;
}

/**
 * The first bytes of a file, up to this number, are compared in each pass, even if the pass does not read to
 * the end.
 */
const HEAD = 1 << 16;

/** The version of a file on a web server, weak or strong, as far as an answer declares it. */
export interface UrlVersion {
  readonly etag: string | null;
  readonly modified: string | null;
  /** Bytes of the whole file. */
  readonly size?: number | undefined;
  /** The checksum of its last bytes, if the server sends neither of the first two. */
  readonly tail?: number;
}

export function versionOf({ headers }: Response): UrlVersion {
  return { etag: headers.get('etag'), modified: headers.get('last-modified') };
}

/** True if a server sends no version of a file, so that only its bytes can show a change. */
export function isUnversioned({ etag, modified }: UrlVersion): boolean {
  return etag === null && modified === null;
}

/** Throws the error of a changed file if an answer has another version than the first one. */
export function requireSame(first: UrlVersion, other: UrlVersion, problem: Problem): void {
  const isSame =
    first.etag === other.etag &&
    first.modified === other.modified &&
    first.tail === other.tail &&
    // A server need not report the length of the file in each response.
    (first.size ?? other.size) === (other.size ?? first.size);
  if (!isSame) throw changed(problem);
}

/** Versions of a source's files on web servers: all answers for a file must have the version of the first. */
export class UrlVersions {
  readonly #versions = new Map<string, UrlVersion>();
  /** Lengths and checksums of the first 64 KiB, and of whole streams. */
  readonly #sums = { head: new Map<string, string>(), whole: new Map<string, string>() };

  /** Throws the error of a changed file if a response has another version than the first one. */
  require(url: string, version: UrlVersion, problem: Problem): void {
    const first = this.#versions.get(url) ?? version;
    this.#versions.set(url, first);
    requireSame(first, version, problem);
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
    const compare = (part: 'head' | 'whole', bytes: number, checksum: number) => {
      const sums = this.#sums[part];
      const found = `${bytes} ${checksum}`;
      if ((sums.get(url) ?? found) !== found) throw changed(problem);
      sums.set(url, found);
    };
    let [length, sum] = [0, 0];
    for await (const chunk of chunks) {
      if (length < HEAD && length + chunk.length >= HEAD)
        compare('head', HEAD, crc32(chunk.subarray(0, HEAD - length), sum));
      sum = crc32(chunk, sum);
      length += chunk.length;
      yield chunk;
    }
    if (length < HEAD) compare('head', length, sum);
    compare('whole', length, sum);
  }
}

/** The error of a file that changed. */
export function changed(problem: Problem): Error {
  return problem(
    'the file changed while it was read',
    'Read it again, or download it first where the server makes it anew for each request',
  );
}
