/** A file that is replaced on its web server between two openings, or while it is read, is an error. */
import { Int32, Table, vectorFromArray } from 'apache-arrow';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openSink } from '../../../connectors/open-sink.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { DataError } from '../../../engine/errors.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import { sendRange } from '../../support/send-range.ts';
import { context, streamOf } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const ROWS = 60_000;
const ranges = ['parquet', 'arrow'];
const streams = ['csv', 'csv.gz', 'ndjson', 'arrows'];
const endings = [...ranges, ...streams];

/** Two files of the same length, of other rows: the last one differs, and so do the first ones. */
const versions = Object.fromEntries(
  await Promise.all(
    endings.map(async (ending) => {
      const both = await Promise.all(
        [0, 1].map(async (version) => {
          const numbers = Array.from({ length: ROWS }, (_, i) => 100_000 + ((i * 7919 + version) % 90_000));
          const column = vectorFromArray(numbers, new Int32());
          const { schema, batches } = new Table({ user: column, item: column });
          const file = join(folder, `${version}.${ending}`);
          await (await openSink(file)).consume(streamOf(schema, batches), context() as never);
          return readFileSync(file);
        }),
      );
      return [ending, both] as const;
    }),
  ),
);

/** The version that is sent, and the headers of each. */
let sent = 0;
let headersOf: (version: number) => Record<string, string> = () => ({});
/** Called before each answer. */
let onRequest: (range: string | undefined) => void = () => undefined;

const server = createServer((request, response) => {
  onRequest(request.headers.range);
  const content = versions[(request.url ?? '').slice('/ratings.'.length)][sent];
  sendRange(request, response, content, headersOf(sent));
});
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => server.close());

async function opened(ending: string, headers: typeof headersOf): Promise<Source> {
  [sent, headersOf, onRequest] = [0, headers, () => undefined];
  return openSource(`${base}/ratings.${ending}`);
}

async function rowsOf(source: Source): Promise<number> {
  let rows = 0;
  for await (const { numRows } of await source.execute(context() as never)) rows += numRows;
  return rows;
}

const unversioned: typeof headersOf = () => ({});
const kinds: Readonly<Record<string, typeof headersOf>> = {
  ETag: (version) => ({ ETag: `"${version}"` }),
  'Last-Modified': (version) => ({ 'Last-Modified': new Date(version * 1000).toUTCString() }),
  'neither of them': unversioned,
};

describe.each(Object.entries(kinds))('with %s', (name, headers) => {
  const some = name === 'ETag' ? endings : ['parquet', 'csv', 'arrows'];

  const refused = async (reading: Promise<unknown>, ending: string) => {
    const error = await reading.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataError);
    expect(String(error)).toMatch(/the file changed while it was read/);
    expect(String(error)).toContain(`${base}/ratings.${ending}`);
  };

  test.each(some)('%s is replaced after its columns were read', async (ending) => {
    const source = await opened(ending, headers);
    await source.schema();
    sent = 1;
    // Too little was read to be compared, and all rows are of the second file.
    if (ending === 'arrows' && headers === unversioned) return expect(await rowsOf(source)).toBe(ROWS);
    await refused(rowsOf(source), ending);
    // The next run opens it again, as it is now.
    expect(await rowsOf(source)).toBe(ROWS);
  });

  test.each(some)('%s is replaced between two passes', async (ending) => {
    const source = await opened(ending, headers);
    expect(await rowsOf(source)).toBe(ROWS);
    expect(await rowsOf(source)).toBe(ROWS);
    sent = 1;
    await refused(rowsOf(source), ending);
  });

  test.each(ranges)('%s is replaced while its ranges are read', async (ending) => {
    const source = await opened(ending, headers);
    await source.schema();
    // Not the file's end, from which it is opened again.
    onRequest = (range) => {
      if (range !== undefined && !range.startsWith('bytes=-') && !range.startsWith('bytes=0-')) sent = 1;
    };
    await refused(rowsOf(source), ending);
  });
});

test('a length that is another one is noticed where it is declared', async () => {
  const source = await opened('csv', (version) => ({
    ETag: '"1"',
    'Content-Length': String(versions.csv[version].length),
  }));
  await source.schema();
  const whole = versions.csv[0];
  versions.csv[0] = whole.subarray(0, whole.length - 14);
  try {
    await expect(rowsOf(source)).rejects.toThrow('the file changed while it was read');
  } finally {
    versions.csv[0] = whole;
  }
});

test('without a version, other bytes of a stream after its first 64 KiB are noticed in the next pass', async () => {
  const source = await opened('csv', unversioned);
  expect(await rowsOf(source)).toBe(ROWS);
  const whole = versions.csv[0];
  versions.csv[0] = Buffer.concat([whole.subarray(0, whole.length - 2), Buffer.from('7\n')]);
  expect(versions.csv[0].equals(whole)).toBe(false);
  try {
    await expect(rowsOf(source)).rejects.toThrow('the file changed while it was read');
  } finally {
    versions.csv[0] = whole;
  }
});
