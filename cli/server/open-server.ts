import type { fastify, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { UsageError } from '../../engine/errors.ts';
import { apiPage } from './api-page.ts';
import { HttpError, refusalOf } from './http-error.ts';
import { listenerOptions, mostConnections, type ServerLimits } from './listener-options.ts';
import type { Metrics } from './metrics.ts';
import { openApi, ownPages } from './open-api.ts';
import { Requests } from './requests.ts';
import { routes } from './routes/routes.ts';
import type { ServedModels } from './served-models.ts';
import { tokenCheck } from './token.ts';

export interface ServerOptions extends ServerLimits {
  readonly host: string;
  readonly port: number;
  readonly token: string | undefined;
  /** Seconds that running requests get when the server ends. */
  readonly graceSeconds: number;
  /** Receives failures of the program, for its log. */
  readonly onFailure: (error: unknown) => void;
}

export interface OpenServer {
  /** http://HOST:PORT, with the port that the system chose for port 0. */
  readonly address: string;
  /** Refuses new requests, and ends when the running ones are answered or the grace time is over. */
  close(): Promise<void>;
}

/** Time between two looks for the last running request when the server ends. */
const SWEEP_MILLISECONDS = 50;

const openPaths: readonly string[] = ownPages.flatMap(({ path, isOpen }) => (isOpen ? [path] : []));

/** Listens and answers with the current model of `models`. */
export async function openServer(
  make: typeof fastify,
  models: ServedModels,
  metrics: Metrics,
  options: ServerOptions,
): Promise<OpenServer> {
  const server = make(listenerOptions(options));
  server.server.maxConnections = mostConnections();
  server.server.on('checkExpectation', refuseExpectation);
  const requests = new Requests(models, options);
  let ending = false;
  const check = options.token === undefined ? () => {} : tokenCheck(options.token);
  server.removeContentTypeParser('text/plain');
  server.setErrorHandler((error, _request, reply) => refuse(error, reply, options.onFailure));
  server.setNotFoundHandler((request, reply) => refuse(notFound(request), reply, options.onFailure));
  server.addHook('onRequest', async (request, reply) => {
    measure(request, reply, metrics);
    requireHost(request);
    refuseEncoding(request);
    const isOpen = openPaths.includes(request.routeOptions.url ?? '');
    if (!isOpen) check(request.headers.authorization);
    if (ending && !isOpen) throw new HttpError('ENDING', 'the server is ending');
    // Refused here, so that no body is received for it.
    if (request.is404) throw notFound(request);
  });
  server.addHook('onSend', async (_request, reply) => {
    if (ending) void reply.header('connection', 'close');
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
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: async (_request, reply) => requests.enter(reply),
      handler: (request, reply) => requests.answer(route, request, reply),
    });
  const address = await listen(server, options);
  const close = async () => {
    ending = true;
    const late = setTimeout(() => server.server.closeAllConnections(), 1000 * options.graceSeconds);
    // Connections that wait for a request would keep the server open for the whole grace time.
    const unused = setInterval(() => {
      if (requests.running === 0) server.server.closeAllConnections();
    }, SWEEP_MILLISECONDS);
    await server.close();
    clearTimeout(late);
    clearInterval(unused);
  };
  return { address, close };
}

async function listen(server: FastifyInstance, { host, port }: ServerOptions): Promise<string> {
  try {
    return await server.listen({ host, port });
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

/** HTTP/1.1 demands the header; Node.js refuses requests without it by an empty answer. */
function requireHost({ raw }: FastifyRequest): void {
  if (raw.headers.host === undefined && raw.httpVersion === '1.1')
    throw new HttpError('USAGE', 'the request has no header "host"');
}

/** Bodies are read as they are sent. */
function refuseEncoding({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw new HttpError(
      'ENCODING',
      `the server takes no body with content-encoding ${encoding.slice(0, 50)}`,
    );
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
