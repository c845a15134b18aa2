import type { DataError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { joinBytes } from '../files/stored-bytes.ts';
import {
  type Answer,
  chunksOf,
  get,
  lengthOf,
  TransientFailure,
  type Problem,
  problemOf,
  refuse,
  withAttempts,
} from './request.ts';

/** A part of a file on a web server. */
export interface FetchedRange {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly start: number;
  /** Bytes of the whole file. */
  readonly size: number;
  /** The version that the server sends, weak or strong. */
  readonly etag: string | null;
  readonly modified: string | null;
}

/** Bytes from..to (exclusive), or the last bytes of a file. */
export type ByteRange = { readonly from: number; readonly to: number } | { readonly last: number };

/** A server without support for ranges sends whole files; larger ones than this are refused. */
const WHOLE_BYTES = 1 << 30;

/**
 * Fetches a range of a file's bytes with a GET request. Retries twice if the connection breaks or the server is
 * busy. If the last bytes are requested, a server that sends others is asked for the same bytes by their
 * numbers, and of a server that ignores ranges the whole file is taken. Throws DataError that names the URL and
 * the bytes, UsageError for an invalid URL.
 */
export function fetchRange(url: string, range: ByteRange): Promise<FetchedRange> {
  const problem = problemOf(url, rangeText(range));
  return withAttempts(() => fetchOnce(url, range, problem, 'last' in range), problem);
}

/** Error that names the URL and the bytes. */
export function httpProblem(
  url: string,
  range: ByteRange,
  summary: string,
  advice?: string,
  cause?: unknown,
): DataError {
  return problemOf(url, rangeText(range))(summary, advice, cause);
}

function rangeText(range: ByteRange): string {
  return 'last' in range ? `the last ${range.last} bytes` : `bytes ${range.from}-${range.to - 1}`;
}

/** `range` undefined: the whole file. `wholeDoes`: the whole file will do in place of the range. */
async function fetchOnce(
  url: string,
  range: ByteRange | undefined,
  problem: Problem,
  wholeDoes: boolean,
): Promise<FetchedRange> {
  const answer = await get(url, range === undefined ? {} : { Range: rangeHeader(range) });
  try {
    const { response } = answer;
    const { status, headers } = response;
    const version = { etag: headers.get('etag'), modified: headers.get('last-modified') };
    if (status === 200 && wholeDoes) return await wholeFile(answer, version, problem);
    if (status === 200)
      throw problem(
        'the server ignores ranges: it answers 200 and the whole file, not 206',
        'Download the file first',
      );
    // This is the response for any range of an empty file.
    if (status === 416 && headers.get('content-range') === 'bytes */0')
      return { bytes: new Uint8Array(0), start: 0, size: 0, ...version };
    if (status !== 206) refuse(response, problem);
    const place = contentRange(response);
    if (place === undefined)
      throw problem(
        'the server does not report which part of the file it sends, or how large the file is',
        'Download the file first',
      );
    if (range !== undefined && wholeDoes && !isAsked(place, range)) {
      await response.body?.cancel().catch(() => undefined);
      const { size } = place;
      const same = 'last' in range ? { from: Math.max(0, size - range.last), to: size } : undefined;
      return await fetchOnce(url, same, problem, true);
    }
    requirePlace(place, range, answer, problem);
    const bytes = await readBody(answer, place.end - place.start + 1);
    return { bytes, start: place.start, size: place.size, ...version };
  } finally {
    // If the body was not read, cancelling it closes the connection.
    if (!answer.response.bodyUsed) await answer.response.body?.cancel().catch(() => undefined);
  }
}

function rangeHeader(range: ByteRange): string {
  return 'last' in range ? `bytes=-${range.last}` : `bytes=${range.from}-${range.to - 1}`;
}

/** First and last byte of an answer, and bytes of the whole file. */
interface Place {
  readonly start: number;
  readonly end: number;
  readonly size: number;
}

function isAsked({ start, end, size }: Place, range: ByteRange): boolean {
  return 'last' in range
    ? start === Math.max(0, size - range.last) && end === size - 1
    : start === range.from && end - start < range.to - range.from;
}

/** Throws DataError if a response's headers announce other bytes than requested, or more. */
function requirePlace(
  place: Place,
  range: ByteRange | undefined,
  { response }: Answer,
  problem: Problem,
): void {
  const { start, end, size } = place;
  const advice = 'Download the file first';
  if (range === undefined || !isAsked(place, range))
    throw problem(`the server sends bytes ${start}-${end} of ${size} instead`, advice);
  const length = end - start + 1;
  const declared = lengthOf(response) ?? length;
  if (declared !== length)
    throw problem(`the server sends bytes ${start}-${end} and declares ${declared} bytes`, advice);
}

/** The whole file, from the response of a server that ignores ranges. */
async function wholeFile(
  answer: Answer,
  version: Pick<FetchedRange, 'etag' | 'modified'>,
  problem: Problem,
): Promise<FetchedRange> {
  const length = lengthOf(answer.response);
  const tooLarge = () =>
    problem(
      `the server ignores ranges, and the whole file has more than ${formatBytes(WHOLE_BYTES)}`,
      'Download the file first',
    );
  if ((length ?? 0) > WHOLE_BYTES) throw tooLarge();
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of chunksOf(answer)) {
    size += part.length;
    if (size > WHOLE_BYTES) throw tooLarge();
    parts.push(part);
  }
  return { bytes: joinBytes(parts), start: 0, size, ...version };
}

/** The range that an answer declares; undefined if it declares none or an impossible one. */
export function contentRange({ headers }: Response): Place | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '');
  if (match === null) return undefined;
  const [start, end, size] = match.slice(1).map(Number);
  // Numbers above 2^53 would not be exact.
  return Number.isSafeInteger(size) && start <= end && end < size ? { start, end, size } : undefined;
}

/**
 * Reads exactly the announced number of bytes. If there are fewer, the connection broke; if there are more,
 * the server is faulty.
 */
async function readBody(answer: Answer, expected: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of chunksOf(answer)) {
    length += part.length;
    if (length > expected)
      throw new TransientFailure(`the server sends more than the ${expected} bytes that it announced`);
    parts.push(part);
  }
  if (length < expected)
    throw new TransientFailure(`the connection broke off after ${length} of ${expected} bytes`);
  return joinBytes(parts);
}
