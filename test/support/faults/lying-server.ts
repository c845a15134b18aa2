import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { sendRange } from '../send-range.ts';

/** False answers to some of the requests that a command sends. */
export interface Lies {
  readonly lie: string;
  /** The first request with a lie, from 1, and the number of them; 0: all that follow. */
  readonly first: number;
  readonly times: number;
  /** Bytes or milliseconds of an answer. */
  readonly size: number;
  /** The headers by which the server names versions. */
  readonly versioned: readonly ('ETag' | 'Last-Modified')[];
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly content: Buffer;
  readonly headers: OutgoingHttpHeaders;
  readonly size: number;
}

/** The range that a request asks for; all bytes for a request without one. */
function placeOf({ request, content: { length } }: Asked): { from: number; to: number; isRange: boolean } {
  const [, first, second] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  if (first === undefined) return { from: 0, to: length, isRange: false };
  const from = first === '' ? Math.max(0, length - Number(second)) : Number(first);
  const to = first === '' || second === '' ? length : Math.min(length, Number(second) + 1);
  return { from, to, isRange: true };
}

/** Begins an answer of the right range; `headers` replace its own. Gives the bytes that belong to it. */
function begin(asked: Asked, headers: OutgoingHttpHeaders = {}): Buffer {
  const { from, to, isRange } = placeOf(asked);
  const { content, response } = asked;
  const place = { 'Content-Range': `bytes ${from}-${to - 1}/${content.length}` };
  response.writeHead(isRange ? 206 : 200, { ...(isRange && place), ...asked.headers, ...headers });
  return content.subarray(from, to);
}

function later(asked: Asked, milliseconds: number): void {
  const bytes = begin(asked, { 'Content-Length': placeOf(asked).to - placeOf(asked).from });
  asked.response.write(bytes.subarray(0, bytes.length >> 1));
  setTimeout(() => asked.response.end(bytes.subarray(bytes.length >> 1)), milliseconds).unref();
}

function endless({ response }: Asked): void {
  const part = Buffer.alloc(1 << 16, '1,1,1\n');
  const send = () => {
    while (!response.destroyed) if (!response.write(part)) return void response.once('drain', send);
  };
  send();
}

function cut(asked: Asked, headers: OutgoingHttpHeaders): void {
  const bytes = begin(asked, headers);
  asked.response.write(bytes.subarray(0, asked.size % Math.max(1, bytes.length)), () =>
    asked.response.destroy(),
  );
}

const lengthOf = (asked: Asked) => placeOf(asked).to - placeOf(asked).from;

/** Every false answer. */
export const lies: Readonly<Record<string, (asked: Asked) => void>> = {
  'another place': (asked) => {
    const { from, to } = placeOf(asked);
    const shift = asked.size % 99;
    const place = `bytes ${from + 1 + shift}-${to + shift}/${asked.content.length + 99}`;
    asked.response.end(begin(asked, { 'Content-Range': place }));
  },
  'another total': (asked) => {
    const { from, to, isRange } = placeOf(asked);
    const total = Math.max(to, asked.content.length - 50 + (asked.size % 101));
    const place = { 'Content-Range': `bytes ${from}-${to - 1}/${total}` };
    asked.response.end(begin(asked, isRange ? place : { 'Content-Length': total }));
  },
  'too many bytes': (asked) => {
    asked.response.write(begin(asked));
    asked.response.end(Buffer.alloc(1 + asked.size, '\n'));
  },
  // All of a file without a length may be of any length.
  'bytes without end': (asked) => {
    const length = placeOf(asked).isRange ? {} : { 'Content-Length': lengthOf(asked) };
    asked.response.write(begin(asked, length));
    endless(asked);
  },
  'a size of 2^50': (asked) => {
    const size = 2 ** 50;
    asked.response.writeHead(206, { 'Content-Range': `bytes 0-${size - 1}/${size}` });
    endless(asked);
  },
  'too few bytes of a range': (asked) => {
    const bytes = begin(asked);
    asked.response.end(placeOf(asked).isRange ? bytes.subarray(0, bytes.length >> 1) : bytes);
  },
  'too long a length': (asked) => {
    asked.response.write(begin(asked, { 'Content-Length': lengthOf(asked) + 1 + asked.size }), () =>
      asked.response.destroy(),
    );
  },
  'a cut with a length': (asked) => cut(asked, { 'Content-Length': lengthOf(asked) }),
  'a cut of chunks': (asked) => cut(asked, {}),
  'a new version each time': (asked) => {
    const version = String(performance.now());
    sendRange(asked.request, asked.response, asked.content, { ETag: `"${version}"` });
  },
  'gzip of the bytes': (asked) => {
    asked.response.end(gzipSync(begin(asked, { 'Content-Encoding': 'gzip' })));
  },
  'gzip by name alone': (asked) => {
    asked.response.end(begin(asked, { 'Content-Encoding': 'gzip' }));
  },
  'the whole file': ({ response, content, headers }) => void response.writeHead(200, headers).end(content),
  'a loop of redirects': ({ request, response }) =>
    void response.writeHead(302, { Location: request.url }).end(),
  '404': ({ response }) => void response.writeHead(404).end(),
  '416': ({ response }) => void response.writeHead(416, { 'Content-Range': 'bytes */0' }).end(),
  '503': ({ response }) => void response.writeHead(503).end('busy'),
  'no answer': ({ response }) => void response.destroy(),
  'half, and a wait': (asked) => later(asked, asked.size % 800),
  'half, and nothing more': (asked) => later(asked, 2 ** 30),
  'another file': (asked) => void sendRange(asked.request, asked.response, asked.content, asked.headers),
};

/** False answers at which a command must succeed if there are two of them at most. */
export const harmless = ['503', 'no answer', 'half, and a wait'];

/** A web server of files, each in two versions, that gives the false answers of `begin`. */
export class LyingServer {
  requests = 0;
  #lies: Lies = { lie: '', first: 0, times: 1, size: 0, versioned: ['ETag'] };
  readonly #files: ReadonlyMap<string, readonly [first: Buffer, second: Buffer]>;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  constructor(files: ReadonlyMap<string, readonly [first: Buffer, second: Buffer]>) {
    this.#files = files;
  }

  /** Gives its address. */
  async open(): Promise<string> {
    await new Promise<void>((done) => void this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  begin(lies: Lies): void {
    [this.#lies, this.requests] = [lies, 0];
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { lie, first, times, size, versioned } = this.#lies;
    const number = ++this.requests;
    const isLie = number >= first && first > 0 && (times === 0 || number < first + times);
    const versions = this.#files.get((request.url ?? '').slice(1));
    if (versions === undefined) return void response.writeHead(404).end();
    const version = isLie && lie === 'another file' ? 1 : 0;
    const all = { ETag: `"${version}"`, 'Last-Modified': new Date(1e12 + 1e6 * version).toUTCString() };
    const headers = Object.fromEntries(versioned.map((name) => [name, all[name]]));
    response.on('error', () => undefined);
    const asked = { request, response, content: versions[version], headers, size };
    if (isLie && Object.hasOwn(lies, lie)) lies[lie](asked);
    else sendRange(request, response, asked.content, headers);
  }
}
