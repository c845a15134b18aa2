import type { RecordBatch, Schema } from 'apache-arrow';
import { statSync } from 'node:fs';
import { UsageError } from '../engine/errors.ts';
import { formatBytes, shown } from '../engine/format.ts';
import type { JsonObject } from '../engine/json.ts';
import { oneOf } from '../engine/nearest.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import {
  fromSource,
  knownSchema,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  runInto,
} from '../engine/stream/logical-plan.ts';
import type { Source, SourceStatistics } from '../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../engine/stream/stream.ts';
import { Union } from '../operators/dataflow/union.ts';
import { type ColumnNames, usualNames } from '../operators/ratings/rows/column-names.ts';
import { fieldOf, pairColumns, type PairOptions } from '../operators/ratings/rows/columns.ts';
import { findHeldOut, LeaveOut } from '../operators/splits/leave-out.ts';
import {
  type PairOrder,
  RandomSplit,
  splitBounds,
  type SplitOptions,
} from '../operators/splits/random-split.ts';
import {
  countTimeSizes,
  requireTimes,
  timeInUnit,
  TimeSplit,
  unitsPerMillisecond,
} from '../operators/splits/time-split.ts';
import { checkColumnNames, checkOptions, checkSeed, runOptionNames } from './check-options.ts';
import { definedNames, pairOptions, withFoundColumns } from './found-columns.ts';
import { factLines, someOf } from './inspect/fact-lines.ts';
import type { AnyRow, NameOf, Renamed } from './row-types.ts';
import { Rows } from './rows.ts';
import { requireReplayable, readyPlan } from './run-rows.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import { timeCuts } from './validation/time-cuts.ts';
import { Writers } from './writers.ts';
import { checkValue } from '../operators/params/param.ts';
import { splitParams } from './option-params.ts';

/** Ratings to train on, and other ratings to test on. */
export interface TrainTest<Row extends object = AnyRow> {
  readonly train: Dataset<Row>;
  readonly test: Dataset<Row>;
}

/** One data set for each weight, or two for { before }. */
export type SplitParts<C, Row extends object = AnyRow> = C extends readonly number[]
  ? { -readonly [K in keyof C]: Dataset<Row> }
  : [Dataset<Row>, Dataset<Row>];

export interface TimeSplitOptions extends RunOptions {
  /**
   * The column of times: numbers of one unit, timestamps, dates, or text of ISO dates and times. Default: the
   * data set's own name, else 'timestamp', else one such as 'ts' or 'date'.
   */
  readonly timestampCol?: string;
}

export interface LeaveOutOptions extends PairOptions, TimeSplitOptions {
  /** 'random' (default) draws the ratings to leave out; 'time' takes the latest ones. */
  readonly by?: 'random' | 'time';
  /** For 'random'; default 0. */
  readonly seed?: number;
}

/**
 * A logical plan over a source. Immutable; a method that returns another data set reads no rows. Iterating
 * (`for await`) runs the plan and yields record batches. `Row` is the type of a row as `toArray` gives it, for
 * the compiler alone: `session.read.csv<{ user: bigint; item: string }>('plays.csv')`. Without it, no name of a
 * column is checked.
 */
export class Dataset<Row extends object = AnyRow> extends Rows<Row> {
  readonly session: RunSession;
  readonly plan: LogicalPlan;
  /** The column names by role, as far as they were given. */
  readonly columns: ColumnNames;

  constructor(session: RunSession, plan: LogicalPlan, columns: ColumnNames = {}) {
    super();
    this.session = session;
    this.plan = plan;
    this.columns = columns;
  }

  /** @internal */
  over<Made extends object = Row>(plan: LogicalPlan): Dataset<Made> {
    return new Dataset(this.session, plan, this.columns);
  }

  /** Renames the column `from` to `to`, which keeps its role. */
  override withColumnRenamed<From extends NameOf<Row>, To extends string>(
    from: From,
    to: To,
  ): Dataset<Renamed<Row, From, To>> {
    const { session, plan, columns } = super.withColumnRenamed(from, to);
    const names = Object.entries(columns).map(([role, name]) => [
      role,
      name === (from as string) ? to : name,
    ]);
    return new Dataset(session, plan, Object.fromEntries(names) as ColumnNames);
  }

  /**
   * The rows of this data set, then the rows of others. All must have the same columns, in any order. Columns
   * of different integers, floats or decimals get a type that has all their values. Running it throws UsageError
   * if columns differ in name, or in type without such a type.
   */
  union(...others: readonly Dataset<Row>[]): Dataset<Row> {
    const stranger = others.findIndex((other) => !(other instanceof Dataset));
    if (stranger >= 0) throw new UsageError(`union takes data sets, got ${shown(others[stranger])}`);
    const inputs = [this, ...others].map(({ plan }) => plan);
    const threaded = async (plan: LogicalPlan, columns?: readonly string[]) =>
      readyPlan({ plan, session: this.session }, columns, undefined);
    return this.over(fromSource(new Union(inputs, threaded)));
  }

  /** The same rows, kept in memory after the first read. */
  cache(): Dataset<Row> {
    return this.over(fromSource(new Cached(this.over<AnyRow>(this.plan))));
  }

  /**
   * The same rows with column names by role, which splits, training, evaluation and all other methods use.
   */
  withColumnNames(columns: ColumnNames): Dataset<Row> {
    checkColumnNames('withColumnNames', columns);
    return new Dataset(this.session, this.plan, { ...this.columns, ...definedNames(columns) });
  }

  /**
   * Splits the rows into parts of about the given weights by a hash of (user, item, seed): the parts don't
   * depend on row order, and repetitions of a pair stay together. With `whole: 'items'` all ratings of an item
   * are in one part, and the weights are shares of the items: a model is tested on items that it has no ratings
   * of (`'users'` likewise). The columns of the pair are those that the data set names, else `userCol` and
   * `itemCol`.
   */
  randomSplit<const W extends readonly number[]>(
    weights: W,
    options: Partial<SplitOptions> = {},
  ): SplitParts<W, Row> {
    const split = splitOptions(this, 'randomSplit', options);
    return splitBounds(weights).map(([from, to]) =>
      this.pipe<Row>(new RandomSplit(from, to, split)),
    ) as SplitParts<W, Row>;
  }

  /**
   * The k training and test sets of a k-fold cross-validation. The folds equal `randomSplit` with k equal
   * weights: each row is in exactly one test set and in the k - 1 other training sets, for any row order.
   * Throws UsageError unless k is a whole number from 2 to 1,000.
   */
  kFold(k: number, options: Partial<SplitOptions> = {}): TrainTest<Row>[] {
    checkValue('k', splitParams.folds, k);
    const split = splitOptions(this, 'kFold', options);
    return splitBounds(Array.from({ length: k }, () => 1)).map(([from, to]) => ({
      train: this.pipe<Row>(new RandomSplit(from, to, split, 'outside')),
      test: this.pipe<Row>(new RandomSplit(from, to, split)),
    }));
  }

  /**
   * Splits the rows by time, the oldest part first: into parts of the given weights, or into the rows before
   * a moment and the others. Weights require the cut times, so the column of times is read first, two or
   * three times. All rows of one time go to the same part, the later one, so a part can be smaller than its
   * weight; repetitions of a pair can be in both parts. `before` can be a Date if the column has timestamps, dates or text of dates, or plain numbers
   * whose size shows their unit (from 1973 on, in seconds to nanoseconds). Throws DataError for a row without
   * a time, or if a part with a weight would be empty.
   */
  async timeSplit<const C extends readonly number[] | { readonly before: number | Date }>(
    cut: C,
    options: TimeSplitOptions = {},
  ): Promise<SplitParts<C, Row>> {
    if (!Array.isArray(cut)) checkCut(cut);
    checkOptions('timeSplit', options, ['timestampCol', ...runOptionNames], "{ timestampCol: 'timestamp' }");
    return (await this.#timeParts(cut, options)) as SplitParts<C, Row>;
  }

  async #timeParts(
    cut: readonly number[] | { readonly before: number | Date },
    options: TimeSplitOptions,
  ): Promise<Dataset<Row>[]> {
    const { timestampCol: given, ...run } = options;
    const schema = await this.schema(run);
    const timestampCol = await this.#timeColumn(given, run);
    requireTimes(schema, timestampCol);
    if ('before' in cut)
      return this.#parts(timestampCol, [
        timeInUnit(
          cut.before,
          schema,
          timestampCol,
          cut.before instanceof Date ? await this.#unitOf(schema, timestampCol, run) : undefined,
        ),
      ]);
    requireReplayable(this, 'a time split by weights');
    return this.#parts(timestampCol, await timeCuts(this.plan, timestampCol, cut, this.session.context(run)));
  }

  /** `leaveOut` with each user's last rating by time. */
  async leaveLastOut(options: PairOptions & TimeSplitOptions = {}): Promise<TrainTest<Row>> {
    checkOptions(
      'leaveLastOut',
      options,
      ['userCol', 'itemCol', 'timestampCol', ...runOptionNames],
      "{ timestampCol: 'timestamp' }",
    );
    return this.#leaveOut(1, { ...options, by: 'time' });
  }

  /**
   * Tests on k ratings of every user and trains on the others. The k are drawn by a hash of (user, item,
   * seed), or with `by: 'time'` they are the last k; a hash of the item decides between equal times. All
   * ratings of a user with k or fewer are trained on; repetitions of a pair stay together. Reads the users
   * and items once beforehand and keeps k numbers per user in memory; the parts do not depend on row order.
   * The columns are chosen as in `randomSplit`. Throws UsageError unless k is a whole number from 1 to 1,000.
   */
  async leaveOut(k: number, options: LeaveOutOptions = {}): Promise<TrainTest<Row>> {
    checkValue('k', splitParams.leaveOut, k);
    checkOptions(
      'leaveOut',
      options,
      ['seed', 'userCol', 'itemCol', 'timestampCol', ...runOptionNames],
      "{ by: 'time' }",
      { by: splitParams.by },
    );
    const { by = 'random' } = options;
    const idle = by === 'time' ? 'seed' : 'timestampCol';
    if (options[idle] !== undefined) throw new UsageError(`${idle} cannot be used with by: '${by}'`);
    checkSeed(options.seed ?? 0);
    return this.#leaveOut(k, { ...options, by });
  }

  async #leaveOut(
    k: number,
    { by, seed = 0, timestampCol, userCol, itemCol, ...run }: LeaveOutOptions,
  ): Promise<TrainTest<Row>> {
    const schema = await this.schema(run);
    const timestamp = by === 'time' ? await this.#timeColumn(timestampCol, run) : usualNames.timestamp;
    if (by === 'time') requireTimes(schema, timestamp);
    const [user, item] = pairColumns(schema, pairOptions(this, { userCol, itemCol }));
    requireReplayable(this, 'leaving ratings out');
    const order: PairOrder =
      by === 'time' ? { user, item, by, timestamp } : { user, item, by: 'random', seed };
    const heldOut = await runInto(this.plan, findHeldOut(order, k), this.session.context(run));
    return {
      train: this.pipe<Row>(new LeaveOut(order, heldOut, 'others')),
      test: this.pipe<Row>(new LeaveOut(order, heldOut, 'held-out')),
    };
  }

  /**
   * Units per millisecond of a column of times: from its type, else from the size of its numbers, which are
   * read for it.
   */
  async #unitOf(schema: Schema, column: string, run: RunOptions): Promise<number | undefined> {
    const known = unitsPerMillisecond(fieldOf(schema, column).type);
    if (known !== undefined || !rootSource(this.plan).replayable) return known;
    const ctx = this.session.context(run);
    const sizes = await runInto(this.plan, countTimeSizes(column), ctx);
    sizes.report(ctx);
    return sizes.perMillisecond;
  }

  /** The column of times: as named, else found by its name. */
  async #timeColumn(timestampCol: string | undefined, run: RunOptions): Promise<string> {
    const { columns } = await withFoundColumns(
      this.over<AnyRow>(this.plan),
      { roles: ['timestamp'], given: definedNames({ timestamp: timestampCol }) },
      this.session.context(run),
    );
    return columns.timestamp ?? usualNames.timestamp;
  }

  /** Source, format, size, columns and operators, as far as known without opening a file. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return datasetText(this.plan, { ...this.columns });
  }

  /** Writers. Output appears under its name only once it is complete. */
  get write(): Writers {
    return new Writers(this);
  }

  #parts(column: string, cuts: readonly number[]): Dataset<Row>[] {
    const ends = [undefined, ...cuts, undefined];
    return ends.slice(1).map((to, i) => this.pipe<Row>(new TimeSplit(column, { from: ends[i], to })));
  }
}

/** The options of a split by hash, with the default seed. */
function splitOptions(
  dataset: Pick<Dataset, 'columns'>,
  what: string,
  options: Partial<SplitOptions>,
): SplitOptions {
  checkOptions(what, options, ['seed', 'whole', 'userCol', 'itemCol'], '{ seed: 42 }');
  const { seed = 0, whole, userCol, itemCol } = options;
  checkSeed(seed);
  if (whole !== undefined) oneOf(`whole of ${what}`, whole, ['items', 'users']);
  return { seed, ...(whole && { whole }), ...pairOptions(dataset, { userCol, itemCol }) };
}

function checkCut(cut: unknown): void {
  if (typeof cut === 'object' && cut !== null && 'before' in cut && Object.keys(cut).length === 1) return;
  throw new UsageError('timeSplit takes weights such as [0.9, 0.1], or { before: time }');
}

/** A data set over a source, with column names by role. */
export function datasetOf<Row extends object = AnyRow>(
  session: RunSession,
  source: Source,
  columns: ColumnNames = {},
): Dataset<Row> {
  return new Dataset(session, fromSource(source), columns);
}

/** Most paths and columns to list. */
const MOST_PATHS = 4;
const MOST_COLUMNS = 12;

const formats: Readonly<Record<string, string>> = {
  'iterable-source': 'record batches of the caller',
  'row-source': 'plain objects of the caller',
  'text-source': 'separated text',
  'ndjson-source': 'NDJSON',
  'parquet-source': 'Parquet',
  'arrow-source': 'Arrow IPC',
};

/**
 * Describes a data set for console.log, as far as known without opening a file. `names`: its column names by
 * role, as far as given.
 */
function datasetText(plan: LogicalPlan, names: Readonly<Record<string, string | undefined>>): string {
  const source = rootSource(plan);
  const { paths } = source.describe();
  const files = Array.isArray(paths) ? paths.map(String) : [];
  const schema = knownSchema(plan);
  const given = Object.entries(names).flatMap(([use, name]) =>
    name === undefined ? [] : [`${use} ${name}`],
  );
  const operators = operatorsOf(plan).map(({ name }) => name);
  return factLines('Dataset', {
    source: files.length > 0 ? someOf(files, MOST_PATHS) : source.name,
    format: formats[source.name],
    size: sizeOf(files),
    columns:
      schema === undefined ? 'not read yet; await dataset.schema() opens the files' : columnsOf(schema),
    names: given.length === 0 ? undefined : given.join(', '),
    operators: operators.length === 0 ? 'none' : operators.join(', '),
    read: source.replayable ? undefined : 'only once',
  });
}

/** Total size of files on disk; undefined for folders, patterns and remote files. */
function sizeOf(files: readonly string[]): string | undefined {
  const found = files.map((file) => statSync(file, { throwIfNoEntry: false }));
  if (files.length === 0 || !found.every((one) => one?.isFile())) return undefined;
  return formatBytes(found.reduce((sum, one) => sum + (one?.size ?? 0), 0));
}

function columnsOf({ fields }: Schema): string {
  return someOf(
    fields.map(({ name, type }) => `${name} ${String(type)}`),
    MOST_COLUMNS,
  );
}

/** Rows that are kept in memory after the first read. */
class Cached implements Source {
  readonly name = 'cached';
  readonly phase = 'read';
  readonly replayable = true;
  readonly #rows: Rows;
  #batches: Promise<readonly RecordBatch[]> | undefined;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  describe(): JsonObject {
    return {
      of: this.#rows.plan.kind === 'source' ? this.#rows.plan.source.name : this.#rows.plan.operator.name,
    };
  }

  schema(): Promise<Schema> {
    return this.#rows.schema();
  }

  async statistics({ signal }: ExecutionContext): Promise<SourceStatistics> {
    const batches = await this.#read({ signal });
    return { rows: batches.reduce((sum, { numRows }) => sum + numRows, 0), bytes: 0, files: 0 };
  }

  async execute({ signal }: ExecutionContext): Promise<BatchStream> {
    const batches = await this.#read({ signal });
    return batchStream(
      await this.schema(),
      (async function* () {
        yield* batches;
      })(),
    );
  }

  /** Reads the rows, or returns the kept ones. A failed read is not kept, so the next call reads again. */
  #read(options: { readonly signal?: AbortSignal }): Promise<readonly RecordBatch[]> {
    this.#batches ??= this.#rows
      .collect(options)
      .then(({ batches }) => batches)
      .catch((error: unknown) => {
        this.#batches = undefined;
        throw error;
      });
    return this.#batches;
  }
}

/** Throws UsageError unless `value` is a data set; `what` names the method that takes it. */
export function requireDataset(value: unknown, what: string): asserts value is Dataset {
  if (value instanceof Dataset) return;
  throw new UsageError(`${what} takes a data set, got ${shown(value)}`, {
    advice: 'Make one with session.read, session.fromRows or session.from',
  });
}
