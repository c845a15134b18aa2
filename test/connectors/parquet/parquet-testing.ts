import { DuckDBInstance } from '@duckdb/node-api';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { RecordBatch, Schema } from 'apache-arrow';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeThrift, encodeThrift, type ThriftStruct } from '../../../connectors/parquet/write/thrift.ts';
import type { ProgressEvent } from '../../../engine/events.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';

export const goldenFolder = join(import.meta.dirname, '../../golden/parquet');
export const goldenFiles = readdirSync(goldenFolder)
  .filter((name) => name.endsWith('.parquet'))
  .sort();

export function context(signal = new AbortController().signal) {
  const told: ProgressEvent[] = [];
  return { signal, events: (event: ProgressEvent) => void told.push(event), told };
}

let connection: Promise<DuckDBConnection> | undefined;

export function duckdb(): Promise<DuckDBConnection> {
  connection ??= DuckDBInstance.create(':memory:', { threads: '1' }).then((instance) => instance.connect());
  return connection;
}

/** Rows as plain values, as DuckDB reads them: bigint for 64 bits, Date for timestamps. */
export async function duckRows(query: string): Promise<unknown[][]> {
  return (await (await duckdb()).runAndReadAll(query)).getRowsJS();
}

/** Rows of our batches as plain values. */
export function arrowRows(batches: readonly RecordBatch[]): unknown[][] {
  return batches.flatMap((batch) => {
    const columns = batch.schema.fields.map((_, index) => batch.getChildAt(index));
    return Array.from({ length: batch.numRows }, (_, row) =>
      columns.map((column) => column?.get(row) as unknown),
    );
  });
}

/** A value in a form that both readers share: dates as milliseconds, vectors and typed arrays as arrays. */
export function plain(value: unknown): unknown {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'string' || value === null || typeof value !== 'object') return value;
  return Symbol.iterator in value ? Array.from(value as Iterable<unknown>, plain) : value;
}

/** Changes the footer of a file. */
export function editFooter(file: string, change: (footer: ThriftStruct) => void): void {
  const bytes = readFileSync(file);
  const start = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8);
  const footer = decodeThrift(bytes.subarray(start, -8));
  change(footer);
  const changed = encodeThrift(footer);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(changed.length);
  writeFileSync(file, Buffer.concat([bytes.subarray(0, start), changed, length, Buffer.from('PAR1')]));
}

export async function collect(batches: AsyncIterable<RecordBatch>): Promise<RecordBatch[]> {
  const all: RecordBatch[] = [];
  for await (const batch of batches) all.push(batch);
  return all;
}

export function streamOf(schema: Schema, batches: readonly RecordBatch[]): BatchStream {
  return batchStream(
    schema,
    (async function* () {
      yield* batches;
    })(),
  );
}

/** The outcome of an operation: its value, or the error that it throws. */
export async function outcome<T>(run: () => Promise<T>): Promise<T | Error> {
  try {
    return await run();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Linear congruential numbers, so that every run has the same positions and bits. */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
