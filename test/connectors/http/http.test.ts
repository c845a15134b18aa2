import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { groupRanges } from '../../../connectors/http/http-file.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { reportError } from '../../../cli/report/report-error.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { FactorFlowError, publicText, UsageError } from '../../../engine/errors.ts';
import { context, goldenFolder, plain } from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';
import { base, file, type Handler, read, rowGroupSize, serve, served } from './ratings-server.ts';

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
    expect(served.sent / wanted).toBeLessThan(1.2);
    expect(served.requests.length).toBeLessThanOrEqual(3);
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
    expect(served.requests).toHaveLength(2);
  });

  test('the footer alone takes one request', async () => {
    expect((await new ParquetSource(`${base}/ratings.parquet`).statistics(context())).rows).toBe(
      3 * rowGroupSize,
    );
    expect(served.requests).toEqual(['/ratings.parquet bytes=-65536']);
  });

  test('grouping is by nearness, and never fetches a tenth more', () => {
    const bounds = (...ranges: (readonly [number, number])[]) =>
      groupRanges(ranges.map(([from, to]) => ({ from, to })))
        .map((group) => group.map(({ from, to }) => `${from}-${to}`).join(' '))
        .join(', ');
    expect(bounds([0, 1000], [1000, 2000])).toBe('0-1000 1000-2000');
    expect(bounds([1100, 2000], [0, 1000])).toBe('0-1000 1100-2000');
    expect(bounds([0, 1000], [1300, 2000])).toBe('0-1000, 1300-2000');
    expect(bounds([0, 1e7], [1e7 + 1e5, 2e7])).toBe('0-10000000, 10100000-20000000');
    expect(bounds([0, 1000], [500, 700], [900, 1100])).toBe('0-1000 500-700 900-1100');
    expect(bounds()).toBe('');
  });
});

describe('what is read', () => {
  test.each(['mixed-zstd-V1.parquet', 'ratings-snappy-V2.parquet', 'list-features.parquet'])(
    '%s is what it is on the disk',
    async (name) => {
      served.handler = serve(join(goldenFolder, name));
      const expected = await readTable(new ParquetSource(join(goldenFolder, name)));
      const { columns, rows } = await read(`/${name}?token=secret`);
      expect(columns).toEqual(expected.columns);
      expect(rows.map((row) => row.map(plain))).toEqual(expected.rows.map((row) => row.map(plain)));
    },
  );

  test('chunked answers without a length, and redirects', async () => {
    const good = serve(join(goldenFolder, 'ratings-zstd-V1.parquet'), { 'Transfer-Encoding': 'chunked' });
    served.handler = (request, response) => {
      if (request.url === '/elsewhere') good(request, response);
      else response.writeHead(302, { Location: '/elsewhere' }).end();
    };
    expect((await read('/ratings.parquet')).rows.length).toBeGreaterThan(0);
    expect(served.requests).toContain('/elsewhere bytes=-65536');
  });

  test('a connection that drops once, a server that is busy once', async () => {
    const good = serve(file);
    let calls = 0;
    served.handler = (request, response) => {
      if (calls === 0) response.writeHead(503).end();
      const isTail = request.headers.range === 'bytes=-65536';
      if (calls++ === 0) return;
      if (!isTail && served.requests.filter((line) => !line.endsWith('-65536')).length === 1) {
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
    served.handler = (request, response) => {
      seen.add(request.headers.authorization);
      good(request, response);
    };
    expect((await readTable(new ParquetSource(secret()), ['user'])).rows).toHaveLength(3 * rowGroupSize);
    expect([...seen]).toEqual([`Basic ${Buffer.from('user:pa/ss').toString('base64')}`]);
    expect(served.requests[0]).toBe('/ratings.parquet?token=SECRET bytes=-65536');
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
      served.handler = answer;
      served.requests = [];
      const error = await readTable(new ParquetSource(secret())).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(FactorFlowError);
      const details = JSON.stringify((error as FactorFlowError).details);
      const said = [String(error), details, reportError(error).text].join();
      expect(said).toContain(`${base}/ratings.parquet`);
      expect(said).not.toMatch(/SECRET|pa%2Fss|pa\/ss|us%65r/);
      // In parentheses: the port of the server may have such digits too.
      if (/\(40[134]\)/.test(said)) ofRefusals.push(served.requests.length);
    }
    expect(ofRefusals).toEqual([1, 1, 1]);
    expect(
      JSON.stringify([new ParquetSource(secret()).describe(), new TextSource(secret()).describe()]),
    ).not.toMatch(/SECRET|pa%2Fss/);
    const text = await openSource(secret(), { format: 'csv' });
    served.handler = answers[0];
    const refused = await text.schema().catch((thrown: unknown) => thrown);
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
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UsageError);
      expect(String(error)).not.toContain('SECRET');
    }
    await expect(new ParquetSink('http://host/x.parquet').check()).rejects.toThrow(
      'nothing is written to a web server',
    );
  });
});
