import { type RecordBatch, type Schema, Table } from 'apache-arrow';
import { UsageError } from '../engine/errors.ts';
import { counted, formatBytes, formatCount, formatMilliseconds } from '../engine/format.ts';
import type { Measure } from '../engine/metrics.ts';
import { shown } from '../engine/shown.ts';
import {
  andThen,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
} from '../engine/stream/logical-plan.ts';
import type { Sink } from '../engine/stream/operator.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { plainRows, readableStyle } from '../engine/values/plain-values.ts';
import { nullableTexts } from '../engine/values/value-texts.ts';
import { countedRows, CountRows } from '../operators/dataflow/count-rows.ts';
import { EXCHANGE, EXCHANGE_IN_FILES } from '../operators/exchange/exchanged-rows.ts';
import { requireNames, requireSink } from './check-objects.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import { explainRows } from './inspect/explain-rows.ts';
import { type ColumnSummary, Summaries } from './inspect/summaries.ts';
import { textTable } from './inspect/text-table.ts';
import { runRows } from './run-rows.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import { writeInto } from './writers.ts';

export interface ExplainRowsOptions extends Pick<RunOptions, 'signal'> {
  /** Also runs the plan and adds measurements: rows, bytes and times of tasks and exchanges. */
  readonly analyze?: boolean;
}

/** A row as a plain object, by column name. */
export type PlainRow = Record<string, unknown>;

/** Named columns of rows that are read on demand, with the methods that read them. */
export abstract class ReadableRows implements AsyncIterable<RecordBatch> {
  abstract readonly session: RunSession;
  abstract readonly plan: LogicalPlan;

  /** The columns; opens metadata only. */
  async schema(options: RunOptions = {}): Promise<Schema> {
    checkOptions('schema', options, runOptionNames);
    const { signal } = this.session.context(options);
    using _ = this.session.beginPhase('open files');
    return await schemaOf(this.plan, undefined, signal);
  }

  /**
   * The logical, optimized and physical plan, with reasons; reads metadata only, unless `analyze` is true.
   */
  async explain(options: ExplainRowsOptions = {}): Promise<string> {
    checkOptions('explain', options, ['analyze', 'signal'], '{ analyze: true }');
    const { analyze = false } = options;
    if (typeof analyze !== 'boolean')
      throw new UsageError(`analyze of explain must be true or false, got ${shown(analyze)}`);
    const text = await explainRows(this.plan, this.session, options);
    return analyze ? `${text}\n\n${await analyzeRows(this.plan, this.session, options)}` : text;
  }

  /** Runs the plan; with `columns` it computes and reads only these. */
  async stream(options: RunOptions & { readonly columns?: readonly string[] } = {}): Promise<BatchStream> {
    checkOptions('stream', options, ['columns', ...runOptionNames]);
    return runRows(this, options.columns, this.session.context(options));
  }

  /**
   * Runs the plan into a sink, of the library or your own, and returns its result: for example the summary of
   * a `TextSink`.
   */
  async runInto<Result>(sink: Sink<Result>, options: RunOptions = {}): Promise<Result> {
    checkOptions('runInto', options, runOptionNames);
    requireSink(sink);
    return writeInto(this, sink, options);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<RecordBatch> {
    yield* await this.stream();
  }

  /** Number of rows; from metadata if no operator changes it. */
  async count(options: RunOptions = {}): Promise<number> {
    checkOptions('count', options, runOptionNames);
    const ctx = this.session.context(options);
    const source = rootSource(this.plan);
    if (operatorsOf(this.plan).length === 0 && source.statistics) return (await source.statistics(ctx)).rows;
    const plan = andThen(this.plan, new CountRows());
    return countedRows(await runRows({ plan, session: this.session }, undefined, ctx));
  }

  /** All rows as one Arrow table, in memory. */
  async collect(options: RunOptions = {}): Promise<Table> {
    const stream = await this.stream(options);
    const batches: RecordBatch[] = [];
    for await (const batch of stream) batches.push(batch);
    return new Table(stream.schema, batches);
  }

  /**
   * All rows as plain objects, in memory; 64-bit integers as bigint, dates and times as milliseconds, decimals
   * as numbers if a number has all their digits, else as text, UUIDs as text, lists as arrays.
   */
  async toArray(options: RunOptions = {}): Promise<PlainRow[]> {
    const rows: PlainRow[] = [];
    for await (const batch of await this.stream(options)) {
      const rowAt = plainRows(batch.schema, batch.data.children);
      for (let row = 0; row < batch.numRows; row++) rows.push(rowAt(row));
    }
    return rows;
  }

  /** The first row as a plain object; undefined if there are no rows. */
  async first(options: RunOptions = {}): Promise<PlainRow | undefined> {
    for await (const batch of await this.stream(options))
      if (batch.numRows > 0) return plainRows(batch.schema, batch.data.children)(0);
    return undefined;
  }

  /** Prints the first rows, 20 by default, as a table. */
  async show(rows = 20, options: RunOptions = {}): Promise<void> {
    if (!Number.isSafeInteger(rows) || rows < 0)
      throw new UsageError(`show takes a whole number of rows, got ${shown(rows)}`);
    const shownRows: RecordBatch[] = [];
    let left = rows;
    const stream = await this.stream(options);
    for await (const batch of stream) {
      shownRows.push(batch.slice(0, left));
      left -= batch.numRows;
      if (left <= 0) break;
    }
    console.log(tableText(stream.schema, shownRows, left < 0));
  }

  /** For each column: values, nulls, minimum and maximum; for numbers also mean and standard deviation. */
  async describe(...names: readonly string[]): Promise<ColumnSummary[]> {
    requireNames('describe', names);
    const stream = await this.stream(names.length === 0 ? {} : { columns: names });
    const summaries = new Summaries(stream.schema, names.length === 0 ? undefined : names);
    for await (const batch of stream) summaries.add(batch);
    return summaries.found;
  }
}

/** Runs a plan; returns the rows, bytes and times of its operators, tasks and exchanges as text. */
async function analyzeRows(
  plan: LogicalPlan,
  session: RunSession,
  options: Pick<RunOptions, 'signal'>,
): Promise<string> {
  const ctx = session.context(options);
  const start = performance.now();
  let rows = 0;
  for await (const { numRows } of await runRows({ plan, session }, undefined, ctx)) rows += numRows;
  const all = formatMilliseconds(performance.now() - start);
  return [
    'Measured',
    `  ${all} in all: ${counted(rows, 'row')}`,
    ...[...ctx.metrics.entries()].map(([name, measure]) => `  ${lineOf(name, measure)}`),
  ].join('\n');
}

/**
 * One line about an operator or a stage. Tasks of a stage run in several threads at once; an operator in the
 * calling thread processes batches.
 */
function lineOf(name: string, { runs, rows, bytesDown, milliseconds, wallMilliseconds }: Measure): string {
  if (name === EXCHANGE_IN_FILES) return `${name}: ${formatBytes(bytesDown)}`;
  const isStage = wallMilliseconds > 0 || name.startsWith(EXCHANGE);
  const units = isStage ? counted(runs, 'task') : `${formatCount(runs)} ${runs === 1 ? 'batch' : 'batches'}`;
  const where = isStage ? 'in all threads together' : 'in the calling thread';
  const facts = [
    ...(runs > 0 ? [`${counted(rows, 'row')} in ${units}`] : []),
    ...(bytesDown > 0 ? [`${formatBytes(bytesDown)} made`] : []),
    ...(wallMilliseconds > 0 ? [`took ${formatMilliseconds(wallMilliseconds)}`] : []),
    ...(milliseconds > 0 ? [`${formatMilliseconds(milliseconds)} ${where}`] : []),
  ];
  return `${name}: ${facts.join(', ')}`;
}

/** Most characters of a value to show. */
const MOST_CHARACTERS = 40;

/** Rows as a text table; `more`: further rows follow. */
function tableText({ fields }: Schema, batches: readonly RecordBatch[], more: boolean): string {
  const rows = batches.flatMap((batch) => {
    const texts = batch.data.children.map((data) => nullableTexts(data, readableStyle));
    return Array.from({ length: batch.numRows }, (_, row) => texts.map((text) => shortened(text(row))));
  });
  const table = textTable({ head: fields.map(({ name }) => name), compact: false }, rows);
  return `${table}${more ? `\nonly the first ${rows.length} rows` : ''}`;
}

function shortened(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}
