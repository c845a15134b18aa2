/** Requests, bodies and clients beyond the limits of the server. */
import { EventEmitter, once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { HttpError, refusalOf } from '../../../cli/server/http-error.ts';
import type { ServedModels } from '../../../cli/server/loaded-model.ts';
import { mostConnections } from '../../../cli/server/open-server.ts';
import { Deadline, Requests, Transfers } from '../../../cli/server/requests.ts';
import { describeModel } from '../../../cli/server/routes.ts';
import { closeAll, saveModel, startServer } from './running-server.ts';
import { allOf, connected } from './sockets.ts';

afterAll(closeAll);

const folder = await saveModel('limits');
const server = await startServer(folder);
afterAll(() => server.end());

const head = 'POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';

describe('a request that takes too much', () => {
  it('a body of 100 MB, announced or in chunks', async () => {
    const announced = await connected(server.address);
    const refused = allOf(announced);
    announced.write(
      `POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n`,
    );
    announced.end('{');
    expect(await refused).toMatch(/^HTTP\/1.1 413 [^]*"TOO_LARGE"/);
    const chunked = await connected(server.address);
    const answer = allOf(chunked);
    chunked.write('POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n');
    chunked.write('transfer-encoding: chunked\r\n\r\n');
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    for (let sent = 0; sent < 1600 && !chunked.destroyed; sent++)
      await new Promise((resolve) => chunked.write(chunk, resolve));
    expect(await answer).toMatch(/^HTTP\/1.1 413 [^]*"TOO_LARGE"|^$/);
    expect((await server.get('/recommend/1')).status).toBe(200);
  });

  it('a client that sends slowly loses its connection', async () => {
    const strict = await startServer(folder, { receiveMilliseconds: 100 });
    try {
      const [body, head] = await Promise.all([connected(strict.address), connected(strict.address)]);
      const answers = [allOf(body), allOf(head)];
      body.write('POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n');
      body.write('content-length: 100\r\n\r\n{');
      head.write('GET / HTTP/1.1\r\nhost:');
      for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 408 |^$/);
      expect((await strict.get('/recommend/1')).status).toBe(200);
    } finally {
      await strict.end();
    }
  });

  it('a client that keeps its side open after 408 loses its connection', async () => {
    const strict = await startServer(folder, { receiveMilliseconds: 100 });
    const { hostname, port } = new URL(strict.address);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    socket.on('error', () => {}).resume();
    socket.write(`${head}content-length: 100\r\n\r\n{`);
    await once(socket, 'end');
    const sending = setInterval(() => socket.write(' '), 10);
    try {
      await new Promise((resolve) => socket.on('close', resolve));
    } finally {
      clearInterval(sending);
      await strict.end();
    }
  });

  it('a client that takes its answer slowly loses its connection, and takes no place', async () => {
    const destroyed = Promise.withResolvers<void>();
    const raw = Object.assign(new EventEmitter(), { destroy: () => destroyed.resolve() });
    const reply = {
      raw,
      header: () => reply,
      type: () => reply,
      send: () => reply,
    } as unknown as FastifyReply;
    const models = { use: async () => ({ items: [] }) } as unknown as ServedModels;
    const limits = { mostRequests: 1, bodyBytes: 1, answerMilliseconds: 1000, receiveMilliseconds: 1 };
    const requests = new Requests(models, new Transfers(1), limits);
    const request = { params: {}, query: {} } as unknown as FastifyRequest;
    await requests.answer(describeModel, request, reply);
    expect(requests.running).toBe(0);
    await destroyed.promise;
  });

  it('many clients that send slowly leave room for others', async () => {
    const small = await startServer(folder, { mostRequests: 1 });
    const slow: Socket[] = [];
    const begun = [
      'GET /recommend/1 HTTP/1.1\r\nhost:',
      `${head}content-length: 100\r\n\r\n{`,
      // Refused before its body.
      `${head.replace('fold-in', 'nope')}content-length: 100\r\n\r\n{`,
    ];
    try {
      for (let client = 0; client < 300; client++) {
        slow.push(await connected(small.address));
        slow[client].write(begun[client % 3]);
      }
      expect((await small.get('/recommend/1')).status).toBe(200);
      const answer = await small.post('/fold-in', { ratings: [{ item: 40, rating: 4 }] });
      expect(answer.status).toBe(200);
      const [refused] = (await once(slow[2], 'data')) as [string];
      expect(refused).toMatch(/^HTTP\/1.1 404 /);
    } finally {
      for (const socket of slow) socket.destroy();
      await small.end();
    }
  });

  it('bodies and answers under way have a limit of memory, and the oldest ones end', () => {
    const ended: number[] = [];
    const messages = [0, 1, 2].map((at) =>
      Object.assign(new EventEmitter(), { destroy: () => ended.push(at) }),
    ) as unknown as IncomingMessage[];
    const transfers = new Transfers(100);
    for (const message of messages) transfers.hold(message, 30);
    transfers.hold(messages[1], 10);
    expect(ended).toEqual([]);
    transfers.hold(messages[2], 1);
    expect(ended).toEqual([0]);
    messages[1].emit('close');
    messages[0].emit('close');
    transfers.hold(messages[2], 69);
    expect(ended).toEqual([0]);
    transfers.hold(messages[2], 1000);
    expect(ended).toEqual([0]);
    const gone = Object.assign(new EventEmitter(), { destroyed: true }) as unknown as IncomingMessage;
    transfers.hold(gone, 1);
    expect(gone.listenerCount('close')).toBe(0);
  });

  it('connections leave open files for models', () => {
    expect(mostConnections(Number.POSITIVE_INFINITY)).toBe(16_384);
    expect([mostConnections(1024), mostConnections(100), mostConnections(20_000)]).toEqual([
      512, 256, 16_384,
    ]);
  });

  it('more requests than the limit get 503 with Retry-After', async () => {
    const small = await startServer(folder, { mostRequests: 1 });
    try {
      const socket = await connected(small.address);
      const answers = allOf(socket);
      const get = 'GET /recommend/1 HTTP/1.1\r\nhost: localhost\r\n';
      socket.write(`${get}\r\n${get}connection: close\r\n\r\n`);
      expect(await answers).toMatch(
        /^HTTP\/1.1 200 [^]*HTTP\/1.1 503 [^]*retry-after: 1\r\n[^]*"BUSY"[^]*answers 1 requests already/,
      );
      expect((await small.get('/recommend/1')).status).toBe(200);
    } finally {
      await small.end();
    }
  });

  it('a server that ends waits for begun requests, and for no connection without one', async () => {
    const ending = await startServer(folder);
    const body = '{"ratings":[{"item":40,"rating":4}]}';
    const [slow, silent] = [await connected(ending.address), await connected(ending.address)];
    const begun = once(slow, 'data');
    slow.write(`${head}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n{`);
    expect(await begun).toEqual([expect.stringContaining('100 Continue')]);
    const answer = allOf(slow);
    const start = performance.now();
    const ended = ending.end();
    await new Promise((resolve) => setTimeout(resolve, 200));
    slow.write(body.slice(1));
    expect(await answer).toMatch(/^HTTP\/1.1 200 [^]*connection: close[^]*"items":/i);
    await ended;
    expect(performance.now() - start).toBeLessThan(30_000);
    silent.destroy();
  });

  it('what was sent before the end of a server is answered, also by a busy thread', async () => {
    const ending = await startServer(folder, { mostRequests: 500 });
    const { hostname, port } = new URL(ending.address);
    const body = JSON.stringify({ ratings: [{ item: 40, rating: 4 }] }).padEnd(50_000);
    const request = `${head}content-length: ${body.length}\r\n\r\n${body}`;
    const open = await Promise.all(Array.from({ length: 30 }, () => connected(ending.address)));
    // Connections that the server has not accepted yet.
    const early = Array.from({ length: 30 }, () =>
      connect(Number(port), hostname)
        .setEncoding('utf8')
        .on('error', () => {}),
    );
    const answers = [...open, ...early].map((socket) => {
      socket.write(request);
      return allOf(socket);
    });
    const ended = ending.end();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    const statuses = (await Promise.all(answers)).map((text) => text.slice(0, 12));
    expect(statuses).toEqual(Array(60).fill('HTTP/1.1 200'));
    await ended;
  });

  it('an answer that takes too long becomes an error, and its work is cancelled', async () => {
    const deadline = new Deadline(1);
    await expect(deadline.within(new Promise(() => {}))).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(deadline.signal.aborted).toBe(true);
    const failed = new Deadline(60_000);
    await expect(failed.within(Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(failed.signal.aborted).toBe(true);
    const { status, headers } = refusalOf(new HttpError('TIMEOUT', 'late'));
    expect([status, headers]).toEqual([503, expect.objectContaining({ 'retry-after': '1' })]);
  });
});
