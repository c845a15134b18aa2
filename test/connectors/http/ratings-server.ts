/** A server of ratings in Parquet, whose answers a test may change. */
import { tableFromArrays } from 'apache-arrow';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeEach } from 'vitest';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { sendRange } from '../../support/send-range.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable } from '../text/text-testing.ts';

export const folder = temporaryFolder();
export const file = join(folder, 'ratings.parquet');
export const rowGroupSize = 1 << 17;
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

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The server's answer to each request, the requests that it had, and the bytes that it sent. */
export const served = { handler: (() => undefined) as Handler, requests: [] as string[], sent: 0 };

const server = createServer((request, response) => {
  served.requests.push(`${request.url} ${request.headers.range ?? 'whole'}`);
  served.handler(request, response);
});

await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
export const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => server.close());

/** The answer of a good server. */
export function serve(path: string, headers: Record<string, string> = {}): Handler {
  const content = readFileSync(path);
  return (request, response) => {
    served.sent += sendRange(request, response, content, { ETag: '"1"', ...headers });
  };
}

beforeEach(() => {
  served.handler = serve(file);
  served.requests = [];
  served.sent = 0;
});

export const read = (path: string, columns?: string[]) =>
  readTable(new ParquetSource(`${base}${path}`), columns);
