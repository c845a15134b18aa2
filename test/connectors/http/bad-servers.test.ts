import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { DataError } from '../../../engine/errors.ts';
import { readTable } from '../text/text-testing.ts';
import { base, file, folder, type Handler, read, rowGroupSize, serve, served } from './ratings-server.ts';

const fails = async (pattern: RegExp, path = '/ratings.parquet') => {
  const error = await read(path, ['user']).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
  expect(String(error)).toContain(`${base}/`);
};

describe('bad servers', () => {
  test('ranges are ignored', async () => {
    // The whole file is held in memory, unless it is too large.
    served.handler = (_request, response) => void response.writeHead(200).end(readFileSync(file));
    expect((await read('/ratings.parquet', ['user'])).rows).toHaveLength(3 * rowGroupSize);
    expect(served.requests.length).toBeLessThanOrEqual(2);
    served.handler = (_request, response) =>
      void response.writeHead(200, { 'Content-Length': 2 ** 31 }).write('PAR1');
    await fails(
      /the server ignores ranges, and the whole file has more than 1\.0 GiB \(the last 65536 bytes\).*Download the file first/,
    );
    const good = serve(file);
    served.handler = (request, response) =>
      request.headers.range === 'bytes=-65536'
        ? good(request, response)
        : void response.writeHead(200).end('x');
    await fails(
      /ignores ranges: it answers 200 and the whole file, not 206 \(bytes \d+-\d+\).*Download the file first/,
    );
  });

  test.each([
    [404, /there is no such file on the server \(404\)/],
    [403, /the server denies access \(403\)/],
    [418, /the server answers 418/],
  ])('%s', async (status, pattern) => {
    served.handler = (_request, response) => void response.writeHead(status).end('no');
    await fails(pattern, '/ratings.parquet?token=secret');
    expect(served.requests).toHaveLength(1);
    await expect(read('/ratings.parquet?token=secret')).rejects.not.toThrow(/secret/);
  });

  test('connections that always drop: three attempts, then the URL and the bytes', async () => {
    const good = serve(file);
    served.handler = (request, response) => {
      if (request.headers.range === 'bytes=-65536') good(request, response);
      else request.socket.destroy();
    };
    await fails(/the connection failed: .*, 3 times \(bytes \d+-\d+\)/);
    expect(served.requests.filter((line) => !line.endsWith('-65536'))).toHaveLength(3);
  });

  test('a server that is not there', async () => {
    await expect(readTable(new ParquetSource('http://127.0.0.1:9/ratings.parquet'))).rejects.toThrow(
      /the connection failed.*, 3 times \(the last 65536 bytes\)/,
    );
  });

  test('answers without a size, with other bytes, of another version', async () => {
    served.handler = (_request, response) => void response.writeHead(206).end('bytes');
    await fails(/does not report which part of the file it sends/);
    const good = serve(file);
    const size = readFileSync(file).length;
    const second =
      (headers: Record<string, string>, body = 'x'): Handler =>
      (request, response) => {
        if (request.headers.range === 'bytes=-65536') good(request, response);
        else response.writeHead(206, headers).end(body);
      };
    served.handler = second({ 'Content-Range': `bytes 0-0/${size}` });
    await fails(/the server sends bytes 0-0 of \d+ instead/);
    served.handler = second({ 'Content-Range': `bytes 4-4/${size}`, ETag: '"2"' });
    await fails(/the file changed while it was read/);
    served.handler = second({
      'Content-Range': `bytes 4-4/${size}`,
      ETag: '"1"',
      'Last-Modified': 'Thu, 01 Jan 1970 00:00:01 GMT',
    });
    await fails(/the file changed while it was read/);
    served.handler = second({ 'Content-Range': `bytes 4-4/${size}`, ETag: '"1"' });
    await fails(/the server sends 1 bytes/);
    served.handler = second({ 'Content-Range': `bytes 4-4/${size}` }, 'xyz');
    await fails(/sends more than the 1 bytes that it announced, 3 times/);
  });

  test('files that are empty or no Parquet', async () => {
    served.handler = (_request, response) =>
      void response.writeHead(416, { 'Content-Range': 'bytes */0' }).end();
    await fails(/the file is empty \(0 bytes\)/);
    const html = join(folder, 'index.html');
    writeFileSync(html, '<html>404 not found</html>');
    served.handler = serve(html);
    await fails(/does not end with "PAR1"/);
  });

  test('parquetjs-lite reads no URLs', async () => {
    await expect(
      readTable(new ParquetSource(`${base}/x.parquet`, { backend: 'parquetjs-lite' })),
    ).rejects.toThrow(/parquetjs-lite reads no URLs/);
  });
});
