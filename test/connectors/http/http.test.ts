import { tableFromArrays } from 'apache-arrow';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { groupRanges } from '../../../connectors/http/http-file.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { reportError } from '../../../cli/report/report-error.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { DataError, FactorFlowError, publicText, UsageError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { context, goldenFolder, plain, temporaryFolder } from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';

const folder = temporaryFolder();
const file = join(folder, 'ratings.parquet');
const rowGroupSize = 1 << 17;
let seed = 1;
const scrambled = (below: number) =>
  Int32Array.from(
    { length: 3 * rowGroupSize },
    () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) >>> 4) % below,
  );
const batch = tableFromArrays({
  user: scrambled(1 << 28),
  item: scrambled(1 << 28),
  rating: scrambled(1 << 28),
  timestamp: scrambled(1 << 28),
}).batches[0];
await new ParquetSink(file, { rowGroupSize, codec: 'uncompressed', dictionary: false }).consume(
  batchStream(
    batch.schema,
    (async function* () {
      yield batch;
    })(),
  ),
  context(),
);

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
let handler: Handler;
let requests: string[] = [];
let sent = 0;
const server = createServer((request, response) => {
  requests.push(`${request.url} ${request.headers.range ?? 'whole'}`);
  handler(request, response);
});
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => server.close());

/** The answer of a good server. */
function serve(path: string, headers: Record<string, string> = {}): Handler {
  const content = readFileSync(path);
  return (request, response) => {
    const [, first, second] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const from = first === '' ? Math.max(0, content.length - Number(second)) : Number(first);
    const to = first === '' || second === '' ? content.length : Math.min(content.length, Number(second) + 1);
    const part = content.subarray(from, to);
    sent += part.length;
    response.writeHead(206, {
      'Content-Range': `bytes ${from}-${to - 1}/${content.length}`,
      ETag: '"1"',
      ...headers,
    });
    response.end(part);
  };
}

beforeEach(() => {
  handler = serve(file);
  requests = [];
  sent = 0;
});

const read = (path: string, columns?: string[]) => readTable(new ParquetSource(`${base}${path}`), columns);
const fails = async (pattern: RegExp, path = '/ratings.parquet') => {
  const error = await read(path, ['user']).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
  expect(String(error)).toContain(`${base}/`);
};

describe('what is fetched', () => {
  test('two columns of one row group: under 1.2 times their bytes, in few requests', async () => {
    const reader = await (await parquetBackend()).open(`${base}/ratings.parquet`);
    let rows = 0;
    for await (const { batch: part } of reader.read({
      columns: ['user', 'rating'],
      rowGroups: [1],
      batchSize: 1 << 16,
    }))
      rows += part.numRows;
    await reader.close();
    const wanted = reader.info.rowGroups[1].columns
      .filter(({ column }) => ['user', 'rating'].includes(column))
      .reduce((sum, { bytes }) => sum + bytes, 0);
    expect(rows).toBe(rowGroupSize);
    expect(sent / wanted).toBeLessThan(1.2);
    expect(requests.length).toBeLessThanOrEqual(3);
  });

  test('neighbours come in one request', async () => {
    const reader = await (await parquetBackend()).open(`${base}/ratings.parquet`);
    for await (const { batch: part } of reader.read({
      columns: ['user', 'item'],
      rowGroups: [0],
      batchSize: 1 << 16,
    }))
      expect(part.numRows).toBeGreaterThan(0);
    await reader.close();
    expect(requests).toHaveLength(2);
  });

  test('the footer alone takes one request', async () => {
    expect((await new ParquetSource(`${base}/ratings.parquet`).statistics()).rows).toBe(3 * rowGroupSize);
    expect(requests).toEqual(['/ratings.parquet bytes=-65536']);
  });

  test('grouping is by nearness, and never fetches a tenth more', () => {
    const bounds = (ranges: [number, number][]) =>
      groupRanges(ranges.map(([from, to]) => ({ from, to }))).map((group) =>
        group.map(({ from, to }) => [from, to]),
      );
    expect(
      bounds([
        [0, 1000],
        [1000, 2000],
      ]),
    ).toEqual([
      [
        [0, 1000],
        [1000, 2000],
      ],
    ]);
    expect(
      bounds([
        [1100, 2000],
        [0, 1000],
      ]),
    ).toEqual([
      [
        [0, 1000],
        [1100, 2000],
      ],
    ]);
    expect(
      bounds([
        [0, 1000],
        [1300, 2000],
      ]),
    ).toEqual([[[0, 1000]], [[1300, 2000]]]);
    expect(
      bounds([
        [0, 1e7],
        [1e7 + 1e5, 2e7],
      ]),
    ).toHaveLength(2);
    expect(
      bounds([
        [0, 1000],
        [500, 700],
        [900, 1100],
      ]),
    ).toEqual([
      [
        [0, 1000],
        [500, 700],
        [900, 1100],
      ],
    ]);
    expect(bounds([])).toEqual([]);
  });
});

describe('what is read', () => {
  test.each(['mixed-zstd-V1.parquet', 'ratings-snappy-V2.parquet', 'list-features.parquet'])(
    '%s is what it is on the disk',
    async (name) => {
      handler = serve(join(goldenFolder, name));
      const expected = await readTable(new ParquetSource(join(goldenFolder, name)));
      const { columns, rows } = await read(`/${name}?token=secret`);
      expect(columns).toEqual(expected.columns);
      expect(rows.map((row) => row.map(plain))).toEqual(expected.rows.map((row) => row.map(plain)));
    },
  );

  test('chunked answers without a length, and redirects', async () => {
    const good = serve(join(goldenFolder, 'ratings-zstd-V1.parquet'), { 'Transfer-Encoding': 'chunked' });
    handler = (request, response) => {
      if (request.url === '/elsewhere') good(request, response);
      else response.writeHead(302, { Location: '/elsewhere' }).end();
    };
    expect((await read('/ratings.parquet')).rows.length).toBeGreaterThan(0);
    expect(requests).toContain('/elsewhere bytes=-65536');
  });

  test('a connection that drops once, a server that is busy once', async () => {
    const good = serve(file);
    let calls = 0;
    handler = (request, response) => {
      if (calls === 0) response.writeHead(503).end();
      const isTail = request.headers.range === 'bytes=-65536';
      if (calls++ === 0) return;
      if (!isTail && requests.filter((line) => !line.endsWith('-65536')).length === 1) {
        response.writeHead(206, {
          'Content-Range': `bytes ${/\d+-\d+/.exec(request.headers.range ?? '')?.[0]}/${readFileSync(file).length}`,
          ETag: '"1"',
        });
        response.write('some');
        setImmediate(() => response.destroy());
      } else good(request, response);
    };
    expect((await read('/ratings.parquet', ['user'])).rows).toHaveLength(3 * rowGroupSize);
  });
});

describe('secrets of a URL', () => {
  const secret = () => `${base.replace('//', '//us%65r:pa%2Fss@')}/ratings.parquet?token=SECRET#part`;

  test('user and password become a header', async () => {
    const good = serve(file);
    const seen = new Set<string | undefined>();
    handler = (request, response) => {
      seen.add(request.headers.authorization);
      good(request, response);
    };
    expect((await readTable(new ParquetSource(secret()), ['user'])).rows).toHaveLength(3 * rowGroupSize);
    expect([...seen]).toEqual([`Basic ${Buffer.from('user:pa/ss').toString('base64')}`]);
    expect(requests[0]).toBe('/ratings.parquet?token=SECRET bytes=-65536');
  });

  test('are in no error, of any kind, nor in descriptions', async () => {
    const answers: Handler[] = [401, 403, 404, 410, 418, 500].map(
      (status) => (_request, response) => void response.writeHead(status).end('no'),
    );
    answers.push(
      (request) => request.socket.destroy(),
      (_request, response) =>
        void response.writeHead(302, { Location: 'http://u:pa%2Fss@[bad/?token=SECRET' }).end(),
      serve(join(import.meta.dirname, '../../../package.json')),
    );
    const ofRefusals: number[] = [];
    for (const answer of answers) {
      handler = answer;
      requests = [];
      const error = await readTable(new ParquetSource(secret())).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(FactorFlowError);
      const details = JSON.stringify((error as FactorFlowError).details);
      const said = [String(error), details, reportError(error).text].join();
      expect(said).toContain(`${base}/ratings.parquet`);
      expect(said).not.toMatch(/SECRET|pa%2Fss|pa\/ss|us%65r/);
      // In parentheses: the port of the server may have such digits too.
      if (/\(40[134]\)/.test(said)) ofRefusals.push(requests.length);
    }
    expect(ofRefusals).toEqual([1, 1, 1]);
    expect(
      JSON.stringify([new ParquetSource(secret()).describe(), new TextSource(secret()).describe()]),
    ).not.toMatch(/SECRET|pa%2Fss/);
    const text = await openSource(secret(), { format: 'csv' });
    const refused = await text.schema().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(refused).toBeInstanceOf(FactorFlowError);
    expect(String(refused)).not.toMatch(/SECRET|pa%2Fss|pa\/ss/);
    expect(publicText(`cannot parse http://u:p@h/x?token=1). See https://h/y, and a:b@c`)).toBe(
      'cannot parse http://h/x). See https://h/y, and a:b@c',
    );
  });

  test('what is no URL is refused', async () => {
    for (const path of ['http://', 'http://u:SECRET@', 'https://[bad']) {
      const error = await openSource(path)
        .then((source) => source.schema())
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      expect(error).toBeInstanceOf(UsageError);
      expect(String(error)).not.toContain('SECRET');
    }
    await expect(new ParquetSink('http://host/x.parquet').check()).rejects.toThrow(
      'nothing is written to a web server',
    );
  });
});

describe('bad servers', () => {
  test('ranges are ignored', async () => {
    // The whole file is held in memory, unless it is too large.
    handler = (_request, response) => void response.writeHead(200).end(readFileSync(file));
    expect((await read('/ratings.parquet', ['user'])).rows).toHaveLength(3 * rowGroupSize);
    expect(requests.length).toBeLessThanOrEqual(2);
    handler = (_request, response) =>
      void response.writeHead(200, { 'Content-Length': 2 ** 31 }).write('PAR1');
    await fails(
      /the server ignores ranges, and the whole file has more than 1\.0 GiB \(the last 65536 bytes\).*Download the file first/,
    );
    const good = serve(file);
    handler = (request, response) =>
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
    handler = (_request, response) => void response.writeHead(status).end('no');
    await fails(pattern, '/ratings.parquet?token=secret');
    expect(requests).toHaveLength(1);
    await expect(read('/ratings.parquet?token=secret')).rejects.not.toThrow(/secret/);
  });

  test('connections that always drop: three attempts, then the URL and the bytes', async () => {
    const good = serve(file);
    handler = (request, response) => {
      if (request.headers.range === 'bytes=-65536') good(request, response);
      else request.socket.destroy();
    };
    await fails(/the connection failed: .*, 3 times \(bytes \d+-\d+\)/);
    expect(requests.filter((line) => !line.endsWith('-65536'))).toHaveLength(3);
  });

  test('a server that is not there', async () => {
    await expect(readTable(new ParquetSource('http://127.0.0.1:9/ratings.parquet'))).rejects.toThrow(
      /the connection failed.*, 3 times \(the last 65536 bytes\)/,
    );
  });

  test('answers without a size, with other bytes, of another version', async () => {
    handler = (_request, response) => void response.writeHead(206).end('bytes');
    await fails(/does not tell which part of the file it sends/);
    const good = serve(file);
    const size = readFileSync(file).length;
    const second =
      (headers: Record<string, string>, body = 'x'): Handler =>
      (request, response) => {
        if (request.headers.range === 'bytes=-65536') good(request, response);
        else response.writeHead(206, headers).end(body);
      };
    handler = second({ 'Content-Range': `bytes 0-0/${size}` });
    await fails(/the server sends bytes 0-0 instead/);
    handler = second({ 'Content-Range': `bytes 4-4/${size}`, ETag: '"2"' });
    await fails(/the file changed while it was read/);
    handler = second({ 'Content-Range': `bytes 4-4/${size}`, ETag: '"1"' });
    await fails(/the server sends 1 bytes/);
    handler = second({ 'Content-Range': `bytes 4-4/${size}` }, 'xyz');
    await fails(/sends more than the 1 bytes that it announced, 3 times/);
  });

  test('files that are empty or no Parquet', async () => {
    handler = (_request, response) => void response.writeHead(416, { 'Content-Range': 'bytes */0' }).end();
    await fails(/the file is empty \(0 bytes\)/);
    const html = join(folder, 'index.html');
    writeFileSync(html, '<html>404 not found</html>');
    handler = serve(html);
    await fails(/does not end with "PAR1"/);
  });

  test('parquetjs-lite reads no URLs', async () => {
    await expect(
      readTable(new ParquetSource(`${base}/x.parquet`, { backend: 'parquetjs-lite' })),
    ).rejects.toThrow(/parquetjs-lite reads no URLs/);
  });
});
