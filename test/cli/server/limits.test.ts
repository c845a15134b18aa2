/** Requests, bodies and clients beyond the limits of the server. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { Deadline } from '../../../cli/server/deadline.ts';
import { HttpError, refusalOf } from '../../../cli/server/http-error.ts';
import { mostConnections } from '../../../cli/server/listener-options.ts';
import { closeAll, errorOf, saveModel, startServer } from './running-server.ts';
import { allOf, connected } from './sockets.ts';

afterAll(closeAll);

const folder = await saveModel('limits');
const server = await startServer(folder);
afterAll(() => server.end());

const json = { 'content-type': 'application/json' };

describe('a request that takes too much', () => {
  it('a body of 100 MB, announced or in chunks', async () => {
    const announced = await connected(server.address);
    const refused = allOf(announced);
    announced.write(
      `POST /fold-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n`,
    );
    announced.end('{');
    expect(await refused).toMatch(/^HTTP\/1.1 413 [^]*"TOO_LARGE"/);
    const chunked = await connected(server.address);
    const answer = allOf(chunked);
    chunked.write('POST /fold-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n');
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
      body.write('POST /fold-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n');
      body.write('content-length: 100\r\n\r\n{');
      head.write('GET / HTTP/1.1\r\nhost:');
      for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 408 |^$/);
      expect((await strict.get('/recommend/1')).status).toBe(200);
    } finally {
      await strict.end();
    }
  });

  it('many clients that send slowly leave room for others', async () => {
    const small = await startServer(folder, { mostRequests: 1 });
    const slow: Socket[] = [];
    try {
      for (let client = 0; client < 300; client++) {
        slow.push(await connected(small.address));
        // Half of them send a body to a path that does not exist, which is refused before the body.
        slow[client].write(
          client % 2 === 0
            ? 'GET /recommend/1 HTTP/1.1\r\nhost:'
            : 'POST /nope HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
        );
      }
      expect((await small.get('/recommend/1')).status).toBe(200);
      const [refused] = (await once(slow[1], 'data')) as [string];
      expect(refused).toMatch(/^HTTP\/1.1 404 /);
    } finally {
      for (const socket of slow) socket.destroy();
      await small.end();
    }
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
      const body = '{"ratings":[{"item":40,"rating":4}]}';
      const slow = await connected(small.address);
      const answer = allOf(slow);
      slow.write('POST /fold-in HTTP/1.1\r\nhost: x\r\nconnection: close\r\n');
      slow.write(`content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n{`);
      while ((await small.metric('factorflow_requests_running')) === 0);
      const refused = await fetch(`${small.address}/recommend/1`, { headers: json });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
      expect(await refused.json()).toEqual(errorOf('BUSY', /answers 1 requests already/));
      slow.write(body.slice(1));
      expect(await answer).toMatch(/^HTTP\/1.1 200 /);
      while ((await small.metric('factorflow_requests_running')) > 0);
      expect((await small.get('/recommend/1')).status).toBe(200);
    } finally {
      await small.end();
    }
  });

  it('a server that ends waits for running requests, and for no connection beside', async () => {
    const ending = await startServer(folder);
    const body = '{"ratings":[{"item":40,"rating":4}]}';
    const [slow, silent] = [await connected(ending.address), await connected(ending.address)];
    const answer = allOf(slow);
    slow.write('POST /fold-in HTTP/1.1\r\nhost: x\r\n');
    slow.write(`content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n{`);
    while ((await ending.metric('factorflow_requests_running')) === 0);
    const start = performance.now();
    const ended = ending.end();
    await new Promise((resolve) => setTimeout(resolve, 200));
    slow.write(body.slice(1));
    expect(await answer).toMatch(/^HTTP\/1.1 200 [^]*connection: close[^]*"items":/i);
    await ended;
    expect(performance.now() - start).toBeLessThan(30_000);
    silent.destroy();
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
