/** Reads and writes NDJSON in a folder of the test file. */
import { RecordBatch } from 'apache-arrow';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { NdjsonSink, type NdjsonSinkOptions } from '../../../connectors/ndjson/ndjson-sink.ts';
import { NdjsonSource, type NdjsonSourceOptions } from '../../../connectors/ndjson/ndjson-source.ts';
import { DataError } from '../../../index.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable } from '../text/text-testing.ts';

export const folder = temporaryFolder();
let files = 0;

export function read(
  content: string | Uint8Array,
  options: NdjsonSourceOptions = {},
  columns?: readonly string[],
  name = `${files++}.ndjson`,
) {
  const file = join(folder, name);
  writeFileSync(file, content);
  return readTable(new NdjsonSource(file, options), columns);
}

export async function fails(
  content: string | Uint8Array,
  pattern: RegExp,
  options: NdjsonSourceOptions = {},
  columns?: readonly string[],
) {
  const error = await read(content, options, columns).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
}

export async function write(name: string, batches: readonly RecordBatch[], options: NdjsonSinkOptions = {}) {
  const all = (async function* () {
    yield* batches;
  })();
  await new NdjsonSink(join(folder, name), { overwrite: true, ...options }).consume(
    batchStream(batches[0].schema, all),
    context(),
  );
  return readFileSync(join(folder, name));
}
