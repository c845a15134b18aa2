import { readFileSync } from 'node:fs';
import type { FastifyHttpOptions, RawServerDefault } from 'fastify';
import { HttpError, refusalOf } from './http-error.ts';

export interface ServerLimits {
  /** Most requests to the model at a time. */
  readonly mostRequests: number;
  readonly bodyBytes: number;
  readonly answerMilliseconds: number;
  /** Time for a client to send a whole request. */
  readonly receiveMilliseconds: number;
}

/** Largest head of a request: its path and its headers. */
const MOST_HEAD_BYTES = 16 * 1024;

/** Time for a client to take the answer to a request that it has not sent whole or valid. */
const LAST_ANSWER_MILLISECONDS = 500;

/** A connection that sends and reads nothing for this time is closed. */
const IDLE_MILLISECONDS = 30_000;

/**
 * Most open connections: one takes about 14 kB. Clients that send slowly hold theirs for the time to receive a
 * request, and others must still find a place.
 */
const MOST_CONNECTIONS = 16_384;

/** Open files that are left for models, libraries and threads. */
const RESERVED_FILES = 512;

/** Fastify's options: limits for slow and large requests, and errors of one form. */
export function listenerOptions(limits: ServerLimits) {
  return {
    logger: false,
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.receiveMilliseconds,
    connectionTimeout: IDLE_MILLISECONDS,
    keepAliveTimeout: 2 * IDLE_MILLISECONDS,
    forceCloseConnections: 'idle',
    // Requests that arrive while the server ends are answered.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MOST_HEAD_BYTES },
    http: {
      headersTimeout: limits.receiveMilliseconds,
      connectionsCheckingInterval: Math.min(1000, limits.receiveMilliseconds),
      maxHeaderSize: MOST_HEAD_BYTES,
      // A hook refuses requests without it, with an error of this server's form.
      requireHostHeader: false,
    },
    frameworkErrors: (error, _request, reply) => {
      const { status, headers, body } = refusalOf(error);
      reply.hijack();
      reply.raw.writeHead(status, headers).end(body);
    },
    clientErrorHandler: (error, socket) => {
      if (!socket.writable) return;
      const [status, message] = clientProblem(error.code);
      const { body } = refusalOf(new HttpError('USAGE', message));
      const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8`;
      socket.end(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
      // The client may send on, and never close its side.
      setTimeout(() => socket.destroy(), LAST_ANSWER_MILLISECONDS).unref();
    },
  } satisfies FastifyHttpOptions<RawServerDefault>;
}

/** Most connections that are open at a time; further ones are closed at once. */
export function mostConnections(openFiles = mostOpenFiles()): number {
  return Math.max(RESERVED_FILES / 2, Math.min(MOST_CONNECTIONS, openFiles - RESERVED_FILES));
}

/** Most files that this process may open; infinite where the system does not say so. */
function mostOpenFiles(): number {
  try {
    const [, most] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(most ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function clientProblem(code: string | undefined): readonly [status: string, message: string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return ['408 Request Timeout', 'the request came too slowly'];
  if (code === 'HPE_HEADER_OVERFLOW')
    return ['431 Request Header Fields Too Large', 'the headers are too large'];
  return ['400 Bad Request', 'this is not a valid HTTP request'];
}
