import { RecordBatch, Table } from 'apache-arrow';
import { DataError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { describeValue } from './row-column.ts';

/** Rows as objects, or pages: arrays of rows. */
export type Rows = Iterable<object> | AsyncIterable<object>;

/** Rows, or a function that makes them for each pass. */
export type RowInput = Rows | (() => Rows | Promise<Rows>);

/** Most rows of a batch. */
export const BATCH_ROWS = 65_536;

const EXAMPLE = 'For example [{ user: 1, item: 2, rating: 4 }], a generator, or a function that gives one';

/** Throws UsageError unless rows can be iterated. */
export function requireRows(rows: unknown): asserts rows is Rows {
  if (rows instanceof Promise) {
    const advice = 'Await it first, or pass a function: fromRows(() => promise)';
    throw new UsageError('fromRows takes rows, got a promise of them', { advice });
  }
  if (isIterable(rows) && !ArrayBuffer.isView(rows)) return;
  throw new UsageError(`fromRows takes an iterable of rows, got ${describeValue(rows)}`, { advice: EXAMPLE });
}

function isIterable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Symbol.asyncIterator in value || Symbol.iterator in value;
}

/** One pass over rows, and the signal that cancels it. */
export interface Pass {
  signal: AbortSignal | undefined;
}

/**
 * The rows in arrays of `BATCH_ROWS`; only the last one may be shorter. A cancelled pass ends at the next
 * page, which closes the caller's iterator.
 */
export async function* rowsInBatches(rows: Rows, pass: Pass): AsyncGenerator<object[]> {
  let batch: object[] = [];
  let first = 0;
  for await (const page of pagesOf(rows)) {
    throwIfAborted(pass.signal, 'read');
    for (const row of page) {
      requireRow(row, first + batch.length);
      batch.push(row);
      if (batch.length < BATCH_ROWS) continue;
      yield batch;
      first += batch.length;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

/** The rows of an array of rows or pages, synchronously. */
export function* rowsOfArray(rows: readonly object[]): Generator<object> {
  let number = 0;
  for (const entry of rows) {
    for (const row of pageOf(entry)) {
      requireRow(row, number++);
      yield row;
    }
  }
}

/** Yields rows that are available at once without waiting for each. */
async function* pagesOf(rows: Rows): AsyncGenerator<Iterable<unknown>> {
  if (Array.isArray(rows)) yield rowsOfArray(rows);
  else if (Symbol.asyncIterator in rows) for await (const entry of rows) yield pageOf(entry);
  else for (const entry of rows) yield pageOf(entry);
}

function pageOf(entry: object): readonly unknown[] {
  return Array.isArray(entry) ? (entry as readonly unknown[]) : [entry];
}

function requireRow(row: unknown, number: number): asserts row is object {
  if (row instanceof RecordBatch || row instanceof Table) {
    const advice = 'Pass batches to session.from';
    throw new UsageError('fromRows takes rows, got Arrow record batches', { advice });
  }
  if (typeof row === 'object' && row !== null && !Array.isArray(row) && !ArrayBuffer.isView(row)) return;
  const place = { phase: 'read', row: number, advice: EXAMPLE };
  throw new DataError(`the row is ${describeValue(row)} in place of an object`, place);
}
