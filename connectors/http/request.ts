import { setTimeout as sleep } from 'node:timers/promises';
import { DataError, publicText } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { urlOf } from '../files/path-kinds.ts';

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

/** Retries twice after a broken connection or the answer of a busy server. */
export async function withAttempts<Result>(once: () => Promise<Result>, problem: Problem): Promise<Result> {
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

/** A response whose headers have arrived but whose body has not been read. */
export interface Answer {
  readonly response: Response;
  /**
   * Waits for a part of the body within `patience`. `received`: bytes received before it. Throws
   * TransientFailure.
   */
  wait<Result>(part: Promise<Result>, received: number): Promise<Result>;
}

/** Sends one GET. Throws TransientFailure if the connection fails, UsageError for an invalid URL. */
export async function get(url: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const { address, headers: own } = requestOf(url);
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
  const response = await wait(
    fetch(address, { headers: { ...own, ...headers, 'Accept-Encoding': 'identity' }, signal: ending.signal }),
    0,
  );
  return { response, wait };
}

/**
 * Chunks of an answer's body, which must have the declared length. Leaving the loop early closes the
 * connection. Throws TransientFailure.
 */
export async function* chunksOf(answer: Answer): AsyncGenerator<Uint8Array> {
  const { response, wait } = answer;
  const [reader, declared] = [response.body?.getReader(), lengthOf(response)];
  if (reader === undefined) return;
  let received = 0;
  try {
    for (;;) {
      const { done, value } = await wait(reader.read(), received);
      if (done) break;
      received += value.length;
      if (received > (declared ?? received))
        throw new TransientFailure(`the server sends more than the ${declared} bytes that it declared`);
      yield value;
    }
    if (received < (declared ?? received))
      throw new TransientFailure(`the connection broke off after ${received} of ${declared} bytes`);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
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
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') || !/^\d+$/.test(length)
    ? undefined
    : Number(length);
}

/**
 * Address and headers of a request. User and password of the URL go into a header, since fetch refuses them
 * in addresses.
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
  return publicText(error.cause instanceof Error ? error.cause.message || error.cause.name : error.message);
}

function shown(milliseconds: number): string {
  return `${Math.round(milliseconds) / 1000} s`;
}
