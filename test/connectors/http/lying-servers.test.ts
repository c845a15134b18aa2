/** Servers whose answers are larger, slower or others than what was asked for end with an error at once. */
import { afterEach, describe, expect, test } from 'vitest';
import { fetchRange } from '../../../connectors/http/http-file.ts';
import { patience } from '../../../connectors/http/request.ts';
import { headOfUrl, streamUrl } from '../../../connectors/http/stream-url.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { DataError } from '../../../engine/errors.ts';
import { sendRange } from '../../support/send-range.ts';
import { readTable } from '../text/text-testing.ts';
import { base, type Handler, read, served } from './ratings-server.ts';

const url = `${base}/ratings.parquet`;
const usual = { ...patience };
afterEach(() => void Object.assign(patience, usual));

const errorOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DataError);
  return String(error);
};

/** Sends bytes until the connection ends. */
function endless(status: number, headers: Record<string, string>, onBytes: (bytes: number) => void): Handler {
  return (_request, response) => {
    response.writeHead(status, headers);
    const part = Buffer.alloc(1 << 16, 'x');
    const send = () => {
      while (!response.destroyed) {
        onBytes(part.length);
        if (!response.write(part)) return void response.once('drain', send);
      }
    };
    send();
  };
}

/** Sends a byte now and then, without end. */
function dripping(status: number, headers: Record<string, string>): Handler {
  return (_request, response) => {
    response.writeHead(status, headers).write('x');
    const timer = setInterval(() => response.write('x'), 5);
    response.on('close', () => clearInterval(timer));
  };
}

describe('more than was asked for', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['all of 2^50 bytes', `bytes 0-${2 ** 50 - 1}/${2 ** 50}`],
    ['a byte more than the last ones', 'bytes 0-65536/65537'],
    ['other bytes than the last ones', 'bytes 0-65535/99999'],
    ['fewer than the last ones', 'bytes 99990-99998/99999'],
  ];
  test.each(cases)('the last bytes: %s', async (_name, place) => {
    let sent = 0;
    served.handler = endless(206, { 'Content-Range': place }, (bytes) => (sent += bytes));
    const error = await errorOf(read('/ratings.parquet'));
    expect(error).toContain(
      `the server sends ${place.replace('/', ' of ')} instead (the last 65536 bytes) (${url})`,
    );
    expect(error).toContain('Download the file first');
    // By their numbers and as a whole, too.
    expect(served.requests).toHaveLength(3);
    // As much as the system takes before the connection ends.
    expect(sent).toBeLessThan(3 << 25);
  });

  test('the first bytes for the last ones: they are asked for by their numbers, then the whole file is taken', async () => {
    const content = Uint8Array.from({ length: 90_000 }, (_, i) => i % 251);
    const begin = Buffer.from(content.subarray(0, 65_537));
    const first = { 'Content-Range': `bytes 0-65536/${content.length}` };
    for (const knowsNumbers of [true, false]) {
      served.handler = (request, response) => {
        const { range } = request.headers;
        if (range === undefined) response.end(content);
        else if (knowsNumbers && range !== 'bytes=-65536') sendRange(request, response, content);
        else response.writeHead(206, first).end(begin);
      };
      const { bytes, start, size } = await fetchRange(url, { last: 65_536 });
      expect([start, size]).toEqual([knowsNumbers ? 24_464 : 0, 90_000]);
      expect(Buffer.compare(bytes, content.subarray(start))).toBe(0);
    }
  });

  test('a size that no file has', async () => {
    served.handler = endless(206, { 'Content-Range': `bytes 0-9/${10n ** 30n}` }, () => undefined);
    expect(await errorOf(fetchRange(url, { last: 10 }))).toContain('does not report which part of the file');
  });

  test('a declared length that differs from the range', async () => {
    const headers = { 'Content-Range': 'bytes 4-7/100', 'Content-Length': `${2 ** 40}` };
    served.handler = endless(206, headers, () => undefined);
    expect(await errorOf(fetchRange(url, { from: 4, to: 8 }))).toContain(
      `the server sends bytes 4-7 and declares ${2 ** 40} bytes`,
    );
  });

  test('a range without end', async () => {
    served.handler = endless(206, { 'Content-Range': 'bytes 4-7/100' }, () => undefined);
    expect(await errorOf(fetchRange(url, { from: 4, to: 8 }))).toContain(
      'the server sends more than the 4 bytes that it announced, 3 times',
    );
  });

  test('the first bytes of a file', async () => {
    served.handler = endless(206, { 'Content-Range': 'bytes 0-7/*' }, () => undefined);
    expect(await headOfUrl(url, 8)).toEqual({
      size: undefined,
      type: '',
      bytes: new Uint8Array(8).fill(120),
    });
    served.handler = endless(206, { 'Content-Range': 'bytes 5-12/100' }, () => undefined);
    expect(await errorOf(headOfUrl(url, 8))).toContain('the server sends bytes 5-12/100 instead');
  });

  test('heads without end', async () => {
    served.handler = (request) => {
      const { socket } = request;
      socket.on('error', () => undefined).write('HTTP/1.1 206 Partial Content\r\n');
      const send = () => {
        while (!socket.destroyed)
          if (!socket.write(`X: ${'x'.repeat(1000)}\r\n`)) return void socket.once('drain', send);
      };
      send();
    };
    expect(await errorOf(fetchRange(url, { last: 10 }))).toMatch(/Headers Overflow Error, 3 times/);
  });

  test('redirects without end', async () => {
    served.handler = (_request, response) => void response.writeHead(302, { Location: '/again' }).end();
    expect(await errorOf(fetchRange(url, { last: 10 }))).toMatch(/redirect count exceeded, 3 times/);
  });
});

describe('a server that takes too long', () => {
  test('a byte now and then is too slow, by ranges and whole', async () => {
    Object.assign(patience, { start: 200, bytes: 1 });
    served.handler = dripping(206, { 'Content-Range': 'bytes 0-65535/65536' });
    expect(await errorOf(read('/ratings.parquet'))).toMatch(
      /the server is too slow: \d+ bytes in [\d.]+ s, 3 times \(the last 65536 bytes\)/,
    );
    served.handler = dripping(200, { 'Content-Type': 'text/csv' });
    expect(await errorOf(openSource(`${base}/ratings.csv`).then(readTable))).toMatch(
      /the server is too slow: \d+ bytes in [\d.]+ s, after \d+ bytes/,
    );
  });

  test.each([
    [1e-6, true],
    [Number.POSITIVE_INFINITY, false],
  ])('each byte that comes adds to the time: %d bytes a millisecond', async (bytes, passes) => {
    let rest: () => void = () => undefined;
    served.handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 10 }).write('01234');
      rest = () => void response.end('56789');
    };
    const chunks = streamUrl(url);
    expect((await chunks.next()).value).toHaveLength(5);
    Object.assign(patience, { start: 0, bytes });
    const next = chunks.next();
    if (passes) rest();
    await (passes
      ? expect(next.then(({ value }) => value)).resolves.toHaveLength(5)
      : expect(next).rejects.toThrow(/the server is too slow: 5 bytes in .*, after 5 bytes/));
  });

  test('nothing at all', async () => {
    Object.assign(patience, { idle: 50 });
    served.handler = () => undefined;
    expect(await errorOf(fetchRange(url, { last: 10 }))).toContain('nothing arrived for 0.05 s, 3 times');
  });
});
