import { setTimeout as sleep } from 'node:timers/promises';
import { DataError, publicText } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { urlOf } from '../files/path-kinds.ts';

/** Milliseconds between attempts; there is one more attempt than waits. */
const waits = [100, 400];
const IDLE_MILLISECONDS = 30_000;

/** A failure that another attempt may not meet. */
export class Passing extends Error {}

/** Makes the error of a URL, which names the bytes that were asked for. */
export type Problem = (summary: string, advice?: string, cause?: unknown) => DataError;

/** Errors that name the URL and the bytes. */
export function problemOf(url: string, bytes: string): Problem {
  return (summary, advice, cause) =>
    new DataError(`${summary} (${bytes})`, { phase: 'read', file: url, advice, cause });
}

/** Tries again, twice, after a broken connection or an answer of a busy server. */
export async function withAttempts<Result>(once: () => Promise<Result>, problem: Problem): Promise<Result> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await waitForOther(once());
    } catch (error) {
      if (!(error instanceof Passing)) throw error;
      if (attempt === waits.length)
        throw problem(`${error.message}, ${attempt + 1} times`, 'Check the connection and try again', error);
      await sleep(waits[attempt]);
    }
  }
}

/** An answer whose body is still to come. */
export interface Answer {
  readonly response: Response;
  /** Waits for a part of the body, for 30 s at most. Throws Passing. */
  wait<Result>(part: Promise<Result>): Promise<Result>;
}

/** Sends one GET. Throws Passing where the connection fails, UsageError for what is no URL. */
export async function get(url: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const { address, headers: own } = requestOf(url);
  const idle = new AbortController();
  const wait = async <Result>(part: Promise<Result>): Promise<Result> => {
    const timer = setTimeout(() => idle.abort(), IDLE_MILLISECONDS);
    try {
      return await part;
    } catch (error) {
      throw new Passing(`the connection failed: ${reason(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  };
  const response = await wait(
    fetch(address, { headers: { ...own, ...headers, 'Accept-Encoding': 'identity' }, signal: idle.signal }),
  );
  return { response, wait };
}

/** The chunks of an answer's body. Leaving the loop early ends the connection. */
export async function* chunksOf({ response, wait }: Answer): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await wait(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Throws the error of an answer that has no bytes for us. */
export function refuse({ status, statusText }: Response, problem: Problem): never {
  if (status === 404 || status === 410)
    throw problem(`there is no such file on the server (${status})`, 'Check the URL');
  if (status === 401 || status === 403)
    throw problem(
      `the server denies access (${status})`,
      'Use a URL that needs no login, such as a signed one',
    );
  const answer = `the server answers ${status} ${statusText}`.trim();
  throw status === 429 || status >= 500 ? new Passing(answer) : problem(answer);
}

/**
 * Bytes of the body by the answer's headers; undefined where it does not say, and for bodies that were packed
 * for sending.
 */
export function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') || !/^\d+$/.test(length)
    ? undefined
    : Number(length);
}

/**
 * The address and headers of a request: user and password of the URL go into a header, since addresses may
 * not have them.
 */
function requestOf(url: string): { readonly address: URL; readonly headers: Record<string, string> } {
  const address = urlOf(url);
  const { username, password } = address;
  if (username === '' && password === '') return { address, headers: {} };
  [address.username, address.password] = ['', ''];
  return {
    address,
    headers: {
      Authorization: `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`,
    },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return `nothing came for ${IDLE_MILLISECONDS / 1000} s`;
  return publicText(error.cause instanceof Error ? error.cause.message || error.cause.name : error.message);
}
