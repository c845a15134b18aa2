import { lookup } from 'node:dns/promises';
import type {
  fastify,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyHttpOptions,
  RawServerDefault,
} from 'fastify';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as polled, setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../engine/errors.ts';
import { type Access, headCheck, isLoopback } from './check-head.ts';
import { HttpError, refusalOf } from './http-error.ts';
import type { ServedModels } from './loaded-model.ts';
import type { Metrics } from './metrics.ts';
import { apiPage, openApi, ownPages } from './open-api.ts';
import { type ServerLimits, Requests, Transfers } from './requests.ts';
import { routes } from './routes.ts';

export interface ServerOptions extends ServerLimits, Access {
  readonly port: number;
  /** Seconds that running requests get when the server ends. */
  readonly graceSeconds: number;
  /** Receives failures of the program, for its log. */
  readonly onFailure: (error: unknown) => void;
}

export interface OpenServer {
  /** http://HOST:PORT, with the port that the system chose for port 0. */
  readonly address: string;
  /** The address without its port. */
  readonly host: string;
  /** Answers what was sent, takes no new connections, and ends at the latest when the grace time is over. */
  close(): Promise<void>;
}

/** Longest time in which a server that ends takes new connections, if requests do not cease. */
const LAST_MILLISECONDS = 1000;

const openPaths: readonly string[] = ownPages.flatMap(({ path, isOpen }) => (isOpen ? [path] : []));

/** Listens and answers with the current model of `models`. */
export async function openServer(
  make: typeof fastify,
  models: ServedModels,
  metrics: Metrics,
  options: ServerOptions,
): Promise<OpenServer> {
  // Of a name with several addresses, Fastify would make servers that this one neither limits nor ends.
  const { address: host } = await orProblem(options, lookup(options.host));
  const server = makeServer(make, options);
  server.server.maxConnections = mostConnections();
  server.server.on('checkExpectation', refuseExpectation);
  const traffic = new Traffic(server.server);
  const transfers = new Transfers(options.mostRequests * options.bodyBytes);
  const requests = new Requests(models, transfers, options);
  let ending = false;
  const check = headCheck({ ...options, host });
  server.removeContentTypeParser('text/plain');
  server.setErrorHandler((error, _request, reply) => refuse(error, reply, options.onFailure));
  server.setNotFoundHandler((request, reply) => refuse(notFound(request), reply, options.onFailure));
  server.addHook('onRequest', async (request, reply) => {
    measure(request, reply, metrics);
    check(request, openPaths.includes(request.routeOptions.url ?? ''));
    // Refused here, so that no body is received for it.
    if (request.is404) throw notFound(request);
  });
  server.addHook('onSend', async ({ raw }, reply) => {
    // A connection that is closed before its body is read is reset, and the client may not get the answer.
    if (ending && raw.complete) void reply.header('connection', 'close');
  });
  addPages(server, {
    models,
    metrics,
    requests,
    secured: options.token !== undefined,
    isEnding: () => ending,
  });
  for (const route of routes)
    server.route({
      method: route.method,
      url: urlOf(route.path),
      onRequest: async () => {
        if (route.writes && options.token === undefined && !isLoopback(host))
          throw new HttpError(
            'FORBIDDEN',
            'a server without a token takes no changes from other machines. Start it with --token-file',
          );
      },
      preParsing: ({ raw }, _reply, payload, done) => {
        holdBody(transfers, raw, payload, options.bodyBytes);
        done(null, payload);
      },
      handler: (request, reply) => requests.answer(route, request, reply),
    });
  refuseOtherMethods(server);
  const address = await orProblem(options, server.listen({ host, port: options.port }));
  const close = async () => {
    ending = true;
    const end = performance.now() + 1000 * options.graceSeconds;
    await traffic.ends(Math.min(LAST_MILLISECONDS, 1000 * options.graceSeconds));
    const closed = server.close();
    await traffic.ends(end - performance.now());
    server.server.closeAllConnections();
    await closed;
  };
  return { address, host, close };
}

function makeServer(make: typeof fastify, limits: ServerLimits) {
  const server = make(listenerOptions(limits));
  if ('routerOptions' in server.initialConfig) return server;
  // Before 5.5 Fastify took the router's options among its own; later releases warn of them there.
  const { routerOptions, ...options } = listenerOptions(limits);
  return make({ ...options, ...routerOptions });
}

const urlOf = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1');

/** Counts the bytes of a body; `most`: Fastify refuses a larger one and lets go of it. */
function holdBody(transfers: Transfers, message: IncomingMessage, body: Readable, most: number): void {
  let received = 0;
  body.on('data', ({ length }: Buffer) => {
    received += length;
    if (received <= most) transfers.hold(message, length);
  });
}

/** Answers 405 to known paths with methods that they do not have. */
function refuseOtherMethods(server: FastifyInstance): void {
  const pages = ownPages.map(({ path }) => ({ method: 'GET', path }));
  for (const [path, known] of Map.groupBy([...routes, ...pages], (route) => route.path)) {
    const allowed = known.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const refuseMethod = async ({ method }: FastifyRequest, reply: FastifyReply) => {
      void reply.header('allow', allowed.join(', '));
      throw new HttpError('METHOD', `${path} takes ${allowed.join(' and ')}, not ${method}`);
    };
    server.route({
      method: server.supportedMethods.filter((method) => !allowed.includes(method)),
      url: urlOf(path),
      onRequest: refuseMethod,
      handler: refuseMethod,
    });
  }
}

/** The result of a step of listening, or UsageError with its problem. */
async function orProblem<T>({ host, port }: ServerOptions, step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    const problem = code === undefined ? undefined : listenProblems[code];
    if (problem === undefined) throw error;
    throw new UsageError(`the server cannot listen at ${host}, port ${port}: ${problem[0]}`, {
      advice: problem[1],
      cause: error,
    });
  }
}

const listenProblems: Readonly<Record<string, readonly [problem: string, advice: string]>> = {
  EADDRINUSE: ['another program does', 'Choose another port'],
  EACCES: ['the system does not allow it', 'Choose a port from 1024 on'],
  EADDRNOTAVAIL: ['the machine has no such address', 'Use 127.0.0.1, 0.0.0.0 or an address of the machine'],
  ENOTFOUND: ['there is no such name', 'Use an address such as 127.0.0.1'],
};

function refuse(error: unknown, reply: FastifyReply, onFailure: ServerOptions['onFailure']): FastifyReply {
  const { status, headers, body, internal } = refusalOf(error);
  if (internal) onFailure(error);
  return reply.code(status).headers(headers).send(body);
}

function notFound({ method, url }: FastifyRequest): HttpError {
  const path = url.split('?')[0].slice(0, 100);
  return new HttpError('NOT_FOUND', `there is no ${method} ${path}; /docs has the routes`);
}

/** Answers a header `expect` of anything but 100-continue. */
function refuseExpectation(_: unknown, response: FastifyReply['raw']): void {
  const { headers, body } = refusalOf(new HttpError('USAGE', 'the server meets no such expectation'));
  response.writeHead(417, headers).end(body);
}

/** Counts the request when its answer is sent or its connection is closed. */
function measure(request: FastifyRequest, reply: FastifyReply, metrics: Metrics): void {
  const start = performance.now();
  reply.raw.once('close', () => {
    // A request without an answer has the status that servers use for clients that have gone.
    const status = reply.raw.headersSent ? reply.raw.statusCode : 499;
    const seconds = (performance.now() - start) / 1000;
    metrics.answered(request.routeOptions.url ?? 'none', status, seconds);
  });
}

interface Pages {
  readonly models: ServedModels;
  readonly metrics: Metrics;
  readonly requests: Requests;
  readonly secured: boolean;
  readonly isEnding: () => boolean;
}

function addPages(server: FastifyInstance, { models, metrics, requests, secured, isEnding }: Pages): void {
  const [document, page] = [JSON.stringify(openApi(routes, secured)), apiPage(routes)];
  server.get('/health', async () => ({ ok: true }));
  server.get('/ready', async (_, reply) => {
    const { version } = models.current;
    return reply.code(isEnding() ? 503 : 200).send({ ready: !isEnding(), model: version });
  });
  server.get('/metrics', async (_, reply) => {
    const { model, loadedAt } = models.current;
    const { userCount: users, itemCount: items } = model;
    return reply
      .type('text/plain; version=0.0.4; charset=utf-8')
      .send(metrics.text({ users, items, loadedAt, running: requests.running }));
  });
  server.get('/openapi.json', async (_, reply) =>
    reply.type('application/json; charset=utf-8').send(document),
  );
  server.get('/docs', async (_, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
      .send(page),
  );
}

/** Time without a new connection or request after which all that was sent has been read. */
const QUIET_MILLISECONDS = 50;

/** Connections and requests that arrive at a server. */
class Traffic {
  #arrived = 0;
  #open = 0;

  constructor(server: Server) {
    server.on('connection', () => this.#arrived++);
    server.on('request', (_, response) => {
      this.#arrived++;
      this.#open++;
      response.once('close', () => this.#open--);
    });
  }

  /**
   * Waits until nothing arrives and all requests are answered, at most for a time. The time is counted in
   * pauses, so that a thread that is kept from its sockets has more of it.
   */
  async ends(milliseconds: number): Promise<void> {
    let before: number | undefined;
    for (let left = milliseconds; left > 0 && (before !== this.#arrived || this.#open > 0);) {
      before = this.#arrived;
      await pause(Math.min(left, QUIET_MILLISECONDS));
      left -= QUIET_MILLISECONDS;
      // Timers run before sockets are read, so a busy thread has not seen yet what has arrived.
      await polled();
    }
  }
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
function listenerOptions(limits: ServerLimits) {
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
