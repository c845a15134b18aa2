import { type DataType, Field, RecordBatch, Schema, Table } from 'apache-arrow';
import { DataError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import { batchStream, LEFT_OUT, setOrigin } from '../../engine/stream/stream.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { closeAtAbort } from '../../engine/waits.ts';
import type { TextType } from '../files/format-names.ts';
import {
  columnData,
  type FoundColumn,
  inspectRow,
  isNested,
  type RowColumn,
  typeOfColumn,
  describeValue,
} from './row-column.ts';

export interface RowSourceOptions {
  /**
   * Types of columns; others are inferred from the values. A column of a given type exists even if no row has
   * it.
   */
  readonly types?: Readonly<Record<string, TextType>>;
}

const NESTED = 'since their values are objects, bytes, or lists of lists or objects';

/** Most rows of a batch. */
const BATCH_ROWS = 65_536;

/** Most rows that are inspected to find the type of a column that has only nulls so far. */
const MOST_INSPECTED = 4 * BATCH_ROWS;

/** Batches that were read from an iterator to find the columns; they are the first rows of the pass. */
interface Begun {
  readonly pass: Pass;
  readonly iterator: AsyncGenerator<object[]>;
  readonly taken: readonly object[][];
  closing?: Disposable;
}

/**
 * Rows as plain objects, in batches of at most 65,536. Columns and types are inferred from all rows of an
 * array, else from the first 65,536 rows, or up to 262,144 while a column has only nulls. Arrays are lists, as
 * are typed arrays of numbers; columns of objects, of bytes and of lists of these or of lists are left out. A
 * later value that does not fit is an error with row, column and value, or a bad
 * row where ratings are selected.
 */
export class RowSource implements Source {
  readonly name = 'row-source';
  readonly phase = 'read';
  /** True for arrays and functions. */
  readonly replayable: boolean;
  readonly #rows: RowInput;
  readonly #types: ReadonlyMap<string, TextType>;
  #columns: Promise<ReadonlyMap<string, FoundColumn>> | undefined;
  #begun: Begun | undefined;
  #used = false;
  /** The last result of the function that makes the rows. */
  #made: PlainRows | undefined;

  constructor(rows: RowInput, { types = {} }: RowSourceOptions = {}) {
    if (typeof rows !== 'function') requireRows(rows);
    this.#rows = rows;
    this.#types = new Map(Object.entries(types));
    this.replayable = Array.isArray(rows) || typeof rows === 'function';
  }

  describe(): JsonObject {
    const types = this.#types.size > 0 ? { types: Object.fromEntries(this.#types) } : {};
    return { replayable: this.replayable, ...types };
  }

  async schema(needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    const columns = await this.#find(signal);
    const nested = this.#nestedNames(columns);
    const metadata = nested === '' ? undefined : new Map([[LEFT_OUT, `${NESTED}: ${nested}`]]);
    return new Schema(this.#fields(columns, needs).map(fieldOf), metadata);
  }

  async execute(
    ctx: Pick<ExecutionContext, 'signal'> & Partial<Pick<ExecutionContext, 'events'>>,
    wanted?: readonly string[],
    needs?: ValueNeeds,
  ) {
    this.#requireUnread();
    const found = await this.#find(ctx.signal);
    const nested = wanted === undefined ? this.#nestedNames(found) : '';
    if (nested !== '') ctx.events?.({ type: 'warning', text: `columns are left out, ${NESTED}: ${nested}` });
    const all = this.#fields(found, needs);
    const columns = wanted === undefined ? all : all.filter(({ name }) => wanted.includes(name));
    const begun: Begun = this.#begun ?? { ...(await this.#iterate(ctx.signal)), taken: [] };
    begun.closing?.[Symbol.dispose]();
    begun.pass.signal = ctx.signal;
    this.#used = true;
    this.#begun = undefined;
    const schema = new Schema(columns.map(fieldOf));
    const reading = { schema, columns, signal: ctx.signal, takesFaults: needs?.takesFaults ?? false };
    return batchStream(schema, this.#run(begun, reading));
  }

  async *#run({ iterator, taken }: Begun, reading: Reading): AsyncGenerator<RecordBatch> {
    let firstRow = 0;
    try {
      for await (const rows of inOrder(taken, iterator)) {
        throwIfAborted(reading.signal, 'read');
        yield toBatch(rows, firstRow, reading);
        firstRow += rows.length;
      }
    } finally {
      await iterator.return(undefined);
    }
  }

  #requireUnread(): void {
    if (!this.#used || this.replayable) return;
    const problem = 'these rows can be read only once, and they were read already';
    const advice = 'Pass an array, or a function that makes the rows anew';
    throw new UsageError(problem, { phase: 'read', advice });
  }

  /** The columns that batches can have. */
  #fields(columns: ReadonlyMap<string, FoundColumn>, needs: ValueNeeds | undefined): RowColumn[] {
    const absent = [...this.#types.keys()].filter((name) => !columns.has(name));
    const given = absent.map((name): FoundColumn => ({ name, kinds: 0, first: undefined }));
    const kept = [...columns.values(), ...given].filter((column) => !this.#leavesOut(column));
    return kept.map((column) => {
      const type = this.#types.get(column.name);
      const isNumbers = needs?.numbers.includes(column.name) ?? false;
      return { ...column, type: typeOfColumn(column, type, isNumbers), isGiven: type !== undefined };
    });
  }

  #nestedNames(columns: ReadonlyMap<string, FoundColumn>): string {
    const nested = [...columns.values()].filter((column) => this.#leavesOut(column));
    return nested.map(({ name }) => name).join(', ');
  }

  #leavesOut(column: FoundColumn): boolean {
    return isNested(column) && this.#types.get(column.name) === undefined;
  }

  #find(signal: AbortSignal | undefined): Promise<ReadonlyMap<string, FoundColumn>> {
    if (this.#columns === undefined) {
      this.#columns = Array.isArray(this.#rows) ? inspectArray(this.#rows) : this.#inspectFirst(signal);
      // A failure is not cached: the next attempt inspects the rows again.
      this.#columns.catch(() => {
        this.#columns = undefined;
        // The rows that were read are lost.
        if (signal?.aborted) this.#used = true;
      });
    }
    return this.#columns;
  }

  async #inspectFirst(signal: AbortSignal | undefined): Promise<ReadonlyMap<string, FoundColumn>> {
    const { iterator, pass } = await this.#iterate(signal);
    const columns = new Map<string, FoundColumn>();
    const taken: object[][] = [];
    let rows = 0;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      taken.push(next.value);
      for (const row of next.value) inspectRow(columns, row, rows++);
      if (rows >= MOST_INSPECTED || [...columns.values()].every(({ kinds }) => kinds !== 0)) break;
    }
    requireSome(columns, rows, this.#types.size);
    if (this.replayable) await iterator.return(undefined);
    else this.#keep({ iterator, pass, taken }, signal);
    return columns;
  }

  /** Keeps a pass that was begun for the columns. It ends if the run that needs them is cancelled. */
  #keep(begun: Begun, signal: AbortSignal | undefined): void {
    this.#begun = begun;
    begun.closing = closeAtAbort(begun.iterator, signal, () => {
      this.#begun = undefined;
      this.#used = true;
    });
  }

  async #iterate(signal: AbortSignal | undefined): Promise<Pick<Begun, 'iterator' | 'pass'>> {
    this.#requireUnread();
    const rows: PlainRows = typeof this.#rows === 'function' ? await this.#rows() : this.#rows;
    requireRows(rows);
    if (rows === this.#made && 'next' in rows) {
      const problem = 'the function gave the same iterator again, whose rows were read already';
      throw new UsageError(problem, { phase: 'read', advice: 'Make a new one at each call' });
    }
    this.#made = typeof this.#rows === 'function' ? rows : undefined;
    const pass = { signal };
    return { iterator: rowsInBatches(rows, pass), pass };
  }
}

async function inspectArray(rows: readonly object[]): Promise<ReadonlyMap<string, FoundColumn>> {
  const columns = new Map<string, FoundColumn>();
  let number = 0;
  for (const row of rowsOfArray(rows)) inspectRow(columns, row, number++);
  requireSome(columns, number, 0);
  return columns;
}

function requireSome(columns: ReadonlyMap<string, FoundColumn>, rows: number, types: number): void {
  if (rows === 0 && types === 0) {
    throw new DataError('there are no rows, so their columns are unknown', { phase: 'read' });
  }
  if (rows === 0 || columns.size > 0) return;
  const advice = 'Pass plain objects such as { user: 1, item: 2, rating: 4 }';
  throw new DataError('the row has no columns', { phase: 'read', row: 0, advice });
}

function fieldOf({ name, type }: { readonly name: string; readonly type: DataType }): Field {
  return new Field(name, type, true);
}

async function* inOrder(taken: readonly object[][], iterator: AsyncGenerator<object[]>) {
  yield* taken;
  yield* iterator;
}

/** Settings of one pass over the rows. */
interface Reading {
  readonly schema: Schema;
  readonly columns: readonly RowColumn[];
  readonly signal: AbortSignal;
  /** Values that do not fit become null, with the reason in the batch's origin. */
  readonly takesFaults: boolean;
}

function toBatch(rows: readonly object[], firstRow: number, reading: Reading): RecordBatch {
  const { schema, columns, takesFaults } = reading;
  const faults = new Map<number, string>();
  const children = columns.map((column) =>
    columnData(rows, column, (row, reason) => {
      if (!takesFaults) throw faultError(reason, firstRow + row, column.name);
      faults.set(row, faults.get(row) ?? reason);
    }),
  );
  const batch = batchOf(schema, rows.length, children);
  return setOrigin(batch, { firstRow, ...(faults.size > 0 ? { faults } : {}) });
}

function faultError(reason: string, row: number, column: string): DataError {
  const advice = `Give the column one kind of value, or a type: types: { ${column}: 'utf8' }`;
  return new DataError(reason, { phase: 'read', row, advice });
}

/** Rows as objects, or pages: arrays of rows. */
type PlainRows = Iterable<object> | AsyncIterable<object>;

/** Rows, or a function that makes them for each pass. */
export type RowInput = PlainRows | (() => PlainRows | Promise<PlainRows>);

const EXAMPLE = 'For example [{ user: 1, item: 2, rating: 4 }], a generator, or a function that gives one';

/** Throws UsageError unless rows can be iterated. */
function requireRows(rows: unknown): asserts rows is PlainRows {
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
interface Pass {
  signal: AbortSignal | undefined;
}

/**
 * The rows in arrays of `BATCH_ROWS`; only the last one may be shorter. A cancelled pass ends at the next
 * page, which closes the caller's iterator.
 */
async function* rowsInBatches(rows: PlainRows, pass: Pass): AsyncGenerator<object[]> {
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
function* rowsOfArray(rows: readonly object[]): Generator<object> {
  let number = 0;
  for (const entry of rows) {
    for (const row of pageOf(entry)) {
      requireRow(row, number++);
      yield row;
    }
  }
}

/** Yields rows that are available at once without waiting for each. */
async function* pagesOf(rows: PlainRows): AsyncGenerator<Iterable<unknown>> {
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
