/** Requests that the server refuses: malformed, or without the token. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { isLoopback, readToken } from '../../../cli/server/check-head.ts';
import { refusalOf } from '../../../cli/server/http-error.ts';
import { loadFastify } from '../../../cli/server/load-fastify.ts';
import { closeAll, errorOf, saveModel, scratch, startServer } from './running-server.ts';
import { allOf, connected } from './sockets.ts';

afterAll(closeAll);

const folder = await saveModel('refusals');
const server = await startServer(folder);
afterAll(() => server.end());

const bodies: Readonly<Record<string, string>> = {
  'no JSON': '{"ratings":',
  'no text': '',
  null: 'null',
  'a number': '7',
  'a list': '[]',
  'no fields': '{}',
  'an unknown field': '{"ratings":[{"item":10,"rating":1}],"m":3}',
  'null as ratings': '{"ratings":null}',
  'no ratings': '{"ratings":[]}',
  'a rating of null': '{"ratings":[null]}',
  'an item of null': '{"ratings":[{"item":null,"rating":3}]}',
  'an item of a list': '{"ratings":[{"item":[1],"rating":3}]}',
  'an item beyond 2^53': '{"ratings":[{"item":9007199254740993,"rating":3}]}',
  'a rating as text': '{"ratings":[{"item":10,"rating":"5"}]}',
  'a rating of 1e308': '{"ratings":[{"item":10,"rating":1e308}]}',
  'a rating of 1e999': '{"ratings":[{"item":10,"rating":1e999}]}',
  'n of a text': '{"ratings":[{"item":10,"rating":1}],"n":"many"}',
  'n of 1,001': '{"ratings":[{"item":10,"rating":1}],"n":1001}',
  'a list to deny of objects': '{"ratings":[{"item":10,"rating":1}],"deny":[{}]}',
  'a prototype': '{"__proto__":{"ratings":[]},"ratings":[]}',
  'deep lists': `{"ratings":${'['.repeat(9000)}${']'.repeat(9000)}}`,
  '10,001 ratings': JSON.stringify({
    ratings: Array.from({ length: 10_001 }, (_, item) => ({ item, rating: 1 })),
  }),
};

describe('a malformed request', () => {
  it.each(Object.keys(bodies))('with a body of %s', async (name) => {
    const { status, body } = await server.post('/fold-in', bodies[name]);
    expect({ status, body }).toEqual({ status: 400, body: errorOf('USAGE', /./) });
    expect(JSON.stringify(body)).not.toMatch(/node_modules|\.ts|\n\s+at /);
    expect(JSON.stringify(body).length).toBeLessThan(400);
  });

  it.each(['n=0', 'n=1e999', 'n=x', 'n=-1', 'm=1', 'n=1&n=2', 'unknownUsers=all', 'deny=1,,2', 'n[]=1'])(
    'with the query %s',
    async (query) => {
      expect(await server.get(`/recommend/1?${query}`)).toEqual({
        status: 400,
        body: errorOf('USAGE', /./),
      });
    },
  );

  it('with an unknown path, method or kind of body', async () => {
    for (const path of ['/', '/nope', '/recommend/1/2', '//', '/.', '/..'])
      expect(await server.get(path)).toEqual({ status: 404, body: errorOf('NOT_FOUND', /^there is no GET/) });
    const text = await server.get('/fold-in', { method: 'POST', body: 'x' });
    expect(text).toEqual({ status: 415, body: errorOf('USAGE', /send content-type: application\/json$/) });
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const packed = await server.get('/fold-in', { method: 'POST', body: gzipSync('{}'), headers });
    expect(packed).toEqual({ status: 415, body: errorOf('ENCODING', /content-encoding gzip$/) });
  });

  it.each([
    ['DELETE', '/recommend/1', 'GET, HEAD'],
    ['GET', '/recommend', 'POST'],
    ['PUT', '/similar-items', 'POST'],
    ['POST', '/health', 'GET, HEAD'],
    ['OPTIONS', '/predict', 'POST'],
  ])('with the method %s for %s', async (method, path, allow) => {
    const answer = await fetch(`${server.address}${path}`, { method });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
    expect(await answer.json()).toEqual(errorOf('METHOD', / takes (GET|POST).*, not /));
  });

  it.each([
    ['content-encoding: Identity', /^HTTP\/1.1 200 /],
    ['content-encoding: identity, gzip', /^HTTP\/1.1 415 [^]*"ENCODING"/],
    ['transfer-encoding: Chunked', /^HTTP\/1.1 200 /],
    ['transfer-encoding: gzip, chunked', /^HTTP\/1.1 415 [^]*"ENCODING"[^]*transfer-encoding gzip, chunked/],
  ])('or with the header %s', async (header, expected) => {
    const body = '{"ratings":[{"item":40,"rating":4}]}';
    const socket = await connected(server.address);
    const answer = allOf(socket);
    socket.write('POST /fold-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n');
    socket.write(`connection: close\r\n${header}\r\n`);
    const [length, end] = [body.length, '\r\n0\r\n\r\n'];
    socket.write(
      header.startsWith('transfer')
        ? `\r\n${length.toString(16)}\r\n${body}${end}`
        : `content-length: ${length}\r\n\r\n${body}`,
    );
    expect(await answer).toMatch(expected);
  });

  it.each([
    '/recommend/..%2f..%2fetc%2fpasswd',
    '/recommend/',
    '/recommend/%00',
    '/recommend/%2e%2e',
    '/recommend/__proto__',
    `/recommend/${'9'.repeat(900)}`,
    `/recommend/${'9'.repeat(5000)}`,
  ])('with the id in %s', async (path) => {
    const { status, body } = await server.get(path);
    expect([400, 404, 414]).toContain(status);
    expect(body).toEqual({
      error: { code: expect.stringMatching(/./), message: expect.stringMatching(/./) },
    });
  });

  it('with an invalid path encoding, or no valid HTTP at all', async () => {
    expect(await server.get('/recommend/%zz')).toEqual({ status: 400, body: errorOf('USAGE', /%zz/) });
    for (const lines of [
      'nonsense\r\n\r\n',
      `GET / HTTP/1.1\r\nhost: localhost\r\na: ${'x'.repeat(20_000)}\r\n\r\n`,
    ]) {
      const socket = await connected(server.address);
      const answer = allOf(socket);
      socket.write(lines);
      expect(await answer).toMatch(/^HTTP\/1.1 4[03][01] [^]*\{"error":\{"code":"USAGE"/);
    }
  });
});

describe('a request without a right', () => {
  it.each([
    ['GET /model HTTP/1.1', '400'],
    ['GET /model HTTP/1.1\r\nhost: ', '400'],
    ['GET /model HTTP/1.1\r\nhost: a b', '400'],
    ['GET /model HTTP/1.1\r\nhost: localhost\r\nhost: localhost', '400'],
    ['GET /model HTTP/1.1\r\nhost: localhost\r\nexpect: more', '417'],
  ])('of the form %#, which Node.js or Fastify would refuse otherwise', async (head, status) => {
    const socket = await connected(server.address);
    const answer = allOf(socket);
    socket.write(`${head}\r\nconnection: close\r\n\r\n`);
    const [start, body] = (await answer).split('\r\n\r\n');
    expect(start).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*application/json`));
    expect(body).toMatch(/{"error":{"code":"USAGE","message":".{10,220}"}}/);
  });

  it('to a server with a token', async () => {
    const token = '0123456789abcdef-token';
    const guarded = await startServer(folder, { token });
    try {
      for (const authorization of [undefined, '', 'Bearer', `Bearer ${token}x`, `Basic ${token}`, token]) {
        const headers: HeadersInit = authorization === undefined ? {} : { authorization };
        for (const path of ['/recommend/1', '/metrics', '/openapi.json', '/docs', '/nope'])
          expect(await guarded.get(path, { headers })).toEqual({
            status: 401,
            body: errorOf('UNAUTHORIZED', /authorization/),
          });
      }
      for (const authorization of [`Bearer ${token}`, `bearer ${token}`])
        expect((await guarded.get('/recommend/1', { headers: { authorization } })).status).toBe(200);
      for (const path of ['/health', '/ready']) expect((await guarded.get(path)).status).toBe(200);
    } finally {
      await guarded.end();
    }
  });

  it('under the name of another site, unless that is named (DNS rebinding)', async () => {
    const statusOf = async (address: string, host: string) => {
      const socket = await connected(address);
      const answer = allOf(socket);
      socket.write(`GET /model HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      return Number((await answer).split(' ')[1]);
    };
    for (const host of [
      'evil.example',
      'evil.example:80',
      '127.evil.example',
      'localhost.evil.example',
      '[fe80::1]',
    ])
      expect([host, await statusOf(server.address, host)]).toEqual([host, 403]);
    for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:1', '127.1.2.3', '[::1]:8080'])
      expect([host, await statusOf(server.address, host)]).toEqual([host, 200]);
    await expect(startServer(folder, { allowHosts: ['http://shop.example'] })).rejects.toThrow(
      '--allow-host takes a name such as shop.example',
    );
    const named = await startServer(folder, { allowHosts: ['Shop.example:8080'] });
    const others = await startServer(folder, { host: '0.0.0.0' });
    expect(await statusOf(named.address, 'shop.example:80')).toBe(200);
    expect(await statusOf(named.address, 'evil.example')).toBe(403);
    expect(await statusOf(others.address, 'evil.example')).toBe(200);
    const spelled = await startServer(folder, { host: 'LOCALHOST' });
    expect(await statusOf(spelled.address, 'evil.example')).toBe(403);
    for (const one of [named, others, spelled]) await one.end();
  });

  it('and a loopback address is one in any spelling', () => {
    for (const name of ['127.0.0.1', '127.9.9.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'])
      expect([name, isLoopback(name)]).toEqual([name, true]);
    for (const name of ['0.0.0.0', '::', '128.0.0.1', '::ffff:8.8.8.8', '127.1', '127.0.0.1.example'])
      expect([name, isLoopback(name)]).toEqual([name, false]);
  });

  it.each([
    ['0.0.0.0', undefined, 1],
    ['0.0.0.0', 'a-token-of-this-test', 0],
    ['localhost', undefined, 0],
    ['LOCALHOST', undefined, 0],
  ])('are warned of at %s with the token %s', async (host, token, warnings) => {
    const open = await startServer(folder, { host, token });
    await open.end();
    const found = open.events.filter((event) => event.type === 'warning' && event.text.includes('no token'));
    expect(found).toHaveLength(warnings);
  });

  it('from the page of another site has no CORS headers', async () => {
    const headers = { origin: 'https://example.com', 'access-control-request-method': 'POST' };
    const answer = await fetch(`${server.address}/fold-in`, { method: 'OPTIONS', headers });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    const simple = await fetch(`${server.address}/recommend/1`, { headers });
    expect(simple.headers.get('access-control-allow-origin')).toBe(null);
  });

  it('cannot be configured by an unfit token', () => {
    const file = join(scratch, 'token');
    for (const [token, fits] of [
      ['short', false],
      ['', false],
      ['with a space in the middle', false],
      ['0123456789abcdef\n', true],
    ] as const) {
      writeFileSync(file, token);
      if (fits) expect(readToken(file, {})).toBe(token.trim());
      else expect(() => readToken(file, {})).toThrow('16 or more');
    }
    expect(readToken(undefined, { FACTORFLOW_TOKEN: '0123456789abcdef' })).toBe('0123456789abcdef');
    expect(readToken(undefined, {})).toBeUndefined();
  });
});

it('an internal error has no text of its own', () => {
  const { status, body, internal } = refusalOf(new TypeError('secret of /home'));
  expect([status, body, internal]).toEqual([
    500,
    '{"error":{"code":"INTERNAL","message":"internal error"}}',
    true,
  ]);
});

it('without Fastify the error has the command that installs it', async () => {
  const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
  await expect(loadFastify(() => Promise.reject(missing))).rejects.toThrow('npm install fastify@5');
  await expect(loadFastify(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
});
