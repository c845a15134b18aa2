/** Files of every format on web servers with and without ranges, and addresses of other stores. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { checkOutput } from '../../../connectors/output/atomic-output.ts';
import { loadModel } from '../../../connectors/model/model-store.ts';
import type { OpenSourceOptions } from '../../../connectors/formats.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { factorflow, fails, json, quick } from '../../cli/run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { goldenFolder } from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';

const folder = temporaryFolder();
const csv = 'user,item,rating\n1,10,4.5\n2,20,3\n1,20,1\n';
const ndjson =
  '{"user":1,"item":10,"rating":4.5}\n{"user":2,"item":20,"rating":3}\n{"user":1,"item":20,"rating":1}\n';
const arrow = tableFromArrays({
  user: Int32Array.of(1, 2, 1),
  item: Int32Array.of(10, 20, 20),
  rating: Float64Array.of(4.5, 3, 1),
});
const rows = [
  [1, 10, 4.5],
  [2, 20, 3],
  [1, 20, 1],
];

const files: Readonly<Record<string, Uint8Array>> = {
  'ratings.csv': Buffer.from(csv),
  'ratings.csv.gz': gzipSync(csv),
  'ratings.tsv': Buffer.from(csv.replaceAll(',', '\t')),
  'ratings.ndjson': Buffer.from(ndjson),
  'ratings.jsonl.gz': gzipSync(ndjson),
  'ratings.arrow': tableToIPC(arrow, 'file'),
  'ratings.arrows': tableToIPC(arrow, 'stream'),
  'empty.csv': Buffer.from(''),
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
let handler: Handler;
let requests: string[] = [];
const server = createServer((request, response) => {
  requests.push(`${request.url} ${request.headers.range ?? 'whole'}`);
  handler(request, response);
});
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => server.close());

/** The answers of a server for files by name, with ranges or without. */
function serving(ranges: boolean, headers: Record<string, string> = {}): Handler {
  return (request, response) => {
    const content = files[(request.url ?? '').slice(1).replace(/\?.*$/, '')];
    if (content === undefined) return void response.writeHead(404).end('no');
    const [, first, second] = /^bytes=(\d*)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (!ranges || first === undefined)
      return void response.writeHead(200, { 'Content-Length': content.length, ...headers }).end(content);
    const [from, to] =
      first === ''
        ? [Math.max(0, content.length - Number(second)), content.length]
        : [Number(first), Number(second) + 1];
    const part = content.subarray(from, to);
    response
      .writeHead(206, {
        'Content-Range': `bytes ${from}-${from + part.length - 1}/${content.length}`,
        ...headers,
      })
      .end(part);
  };
}

beforeEach(() => {
  handler = serving(false);
  requests = [];
});

const read = async (name: string, options?: OpenSourceOptions) =>
  readTable(await openSource(`${base}/${name}`, options));

describe('a file on a web server', () => {
  const names = Object.keys(files).filter((name) => name !== 'empty.csv');
  test.each(names.flatMap((name) => [true, false].map((ranges) => [name, ranges] as const)))(
    '%s, ranges: %s',
    async (name, ranges) => {
      handler = serving(ranges);
      const { columns, rows: found } = await read(name);
      expect(columns.map((column) => column.replace(/:.*/, ''))).toEqual(['user', 'item', 'rating']);
      expect(found).toEqual(rows);
    },
  );

  test('Parquet from a server without ranges is what it is on the disk', async () => {
    const path = join(goldenFolder, 'mixed-zstd-V1.parquet');
    handler = (_request, response) => void response.writeHead(200).end(readFileSync(path));
    const expected = await readTable(new ParquetSource(path));
    const { columns, rows: found } = await readTable(new ParquetSource(`${base}/file.parquet`));
    expect(columns).toEqual(expected.columns);
    expect(found).toHaveLength(expected.rows.length);
  });

  test('that is packed for sending, or comes in chunks, or from elsewhere', async () => {
    handler = (_request, response) =>
      void response
        .writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': gzipSync(csv).length })
        .end(gzipSync(csv));
    expect((await read('ratings.csv')).rows).toEqual(rows);
    const good = serving(false);
    handler = (request, response) => {
      if (request.url === '/ratings.csv') good(request, response);
      else response.writeHead(302, { Location: '/ratings.csv' }).end();
    };
    expect((await read('moved.csv')).rows).toEqual(rows);
    handler = (_request, response) => {
      response.writeHead(200);
      response.write(csv.slice(0, 20));
      setImmediate(() => response.end(csv.slice(20)));
    };
    expect((await read('ratings.csv')).rows).toEqual(rows);
  });

  test('whose ending tells nothing: by its first bytes, its type, or the option', async () => {
    handler = (_request, response) => void response.writeHead(200).end(ndjson);
    expect((await read('export?id=7')).rows).toEqual(rows);
    expect(requests[0]).toBe('/export?id=7 bytes=0-7');
    handler = (_request, response) =>
      void response.writeHead(200, { 'Content-Type': 'text/csv; charset=utf-8' }).end(csv);
    expect((await read('export')).rows).toEqual(rows);
    handler = (_request, response) => void response.writeHead(200).end(csv);
    await expect(read('export')).rejects.toThrow(/the format is not known.*Set the option format/);
    expect((await read('export', { format: 'csv' })).rows).toEqual(rows);
  });

  test('that is not there, not allowed or empty', async () => {
    await expect(read('none.csv')).rejects.toThrow(
      /there is no such file on the server \(404\) \(the whole file\) \(http:\/\/127\.0\.0\.1:\d+\/none\.csv\)\. Check the URL/,
    );
    expect(requests).toHaveLength(1);
    handler = (_request, response) => void response.writeHead(403).end();
    await expect(read('ratings.csv?token=SECRET')).rejects.not.toThrow(/SECRET/);
    handler = serving(false);
    await expect(read('empty.csv')).rejects.toBeInstanceOf(DataError);
  });

  test('whose server is busy once is read; one that breaks off is an error with the bytes', async () => {
    const good = serving(false);
    handler = (request, response) =>
      requests.length === 1 ? void response.writeHead(503).end() : good(request, response);
    expect((await read('ratings.csv')).rows).toEqual(rows);
    handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 1000 });
      response.write(csv);
      setImmediate(() => response.destroy());
    };
    const error = await read('ratings.csv').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataError);
    expect(String(error)).toMatch(/the connection failed: .*, after \d+ bytes/);
  });

  test('trains and is inspected, alone and with a file of the disk', async () => {
    const url = `${base}/ratings.csv.gz`;
    const model = join(folder, 'model');
    const trained = await json('train', url, '--model-dir', model, ...quick);
    expect(trained).toMatchObject({ users: 2, items: 2, ratings: 3 });
    const inspected = await json('inspect', `${base}/ratings.csv`);
    expect(inspected).toMatchObject({ rows: 3, files: 1, bytes: csv.length, users: 2, items: 2 });
  });
});

describe('an address of another store', () => {
  test.each([
    [
      's3://bucket/a/b.parquet',
      /no client that reads from Amazon S3 \(s3:\/\/bucket\/a\/b\.parquet\)\. Give an https:\/\/ address, which aws s3 presign s3:\/\/bucket\/a\/b\.parquet makes, or download the file first: aws s3 cp/,
    ],
    [
      'gs://bucket/b.csv',
      /Google Cloud Storage .*https:\/\/storage\.googleapis\.com\/bucket\/b\.csv .*gcloud storage cp/,
    ],
    ['az://container/b.csv', /Azure Blob Storage .*SAS/],
    ['abfss://container@account.dfs.core.windows.net/b.csv', /Azure Blob Storage/],
    [
      'hf://datasets/user/films@v2/data/r.parquet',
      /the Hugging Face Hub .*https:\/\/huggingface\.co\/datasets\/user\/films\/resolve\/v2\/data\/r\.parquet, or download/,
    ],
    ['hf://user/model/r.parquet', /https:\/\/huggingface\.co\/user\/model\/resolve\/main\/r\.parquet/],
    ['hf://datasets/user', /https:\/\/huggingface\.co\/datasets\/user\/NAME\/resolve\/main\/FILE/],
    [
      'hdfs://host/b.csv',
      /no client that reads from hdfs:\/\/ .*Give an http:\/\/ or https:\/\/ address, or download/,
    ],
    ['file:///data/b.csv', /paths are given without file:\/\/ .*Write \/data\/b\.csv/],
  ])('%s', async (path, pattern) => {
    const error = await openSource(path)
      .then((source) => source.schema())
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toMatch(pattern);
    await expect(new ParquetSource(path).schema()).rejects.toThrow(pattern);
  });

  test('as an output or a model', async () => {
    await expect(
      checkOutput('s3://bucket/model', { kind: 'folder', recognizes: () => true }),
    ).rejects.toThrow(/no client that writes to Amazon S3 .*copy it there afterwards/);
    await expect(loadModel('gs://bucket/model')).rejects.toThrow(
      /no client that reads from Google Cloud Storage/,
    );
    await expect(loadModel('https://host/model')).rejects.toThrow(/a model is a folder/);
  });

  test('in a command: exit code 2, and no secret is shown', async () => {
    await fails(
      2,
      /Amazon S3 \(s3:\/\/bucket\/r\.csv\)/,
      'inspect',
      's3://key:SECRET@bucket/r.csv?versionId=SECRET',
    );
    const { stderr } = await factorflow('inspect', 's3://key:SECRET@bucket/r.csv?versionId=SECRET');
    expect(stderr).not.toContain('SECRET');
  });
});
