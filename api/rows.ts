import { type Schema, type RecordBatch, Table } from 'apache-arrow';
import { UsageError } from '../engine/errors.ts';
import type { Expression, Plain } from '../engine/expressions/expression.ts';
import type { ValueOf, ValueType } from '../engine/expressions/types.ts';
import { shown, counted, formatBytes, formatCount, formatMilliseconds } from '../engine/format.ts';
import type { Measure } from '../engine/metrics.ts';
import {
  andThen,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
} from '../engine/stream/logical-plan.ts';
import type { Operator, Sink } from '../engine/stream/operator.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { plainRows, readableStyle } from '../engine/values/plain-values.ts';
import { nullableTexts } from '../engine/values/value-texts.ts';
import { countedRows, CountRows } from '../operators/dataflow/count-rows.ts';
import { DropNulls } from '../operators/dataflow/drop-nulls.ts';
import { Explode } from '../operators/dataflow/explode.ts';
import { Filter } from '../operators/dataflow/filter.ts';
import type { JoinKind } from '../operators/dataflow/join/join-columns.ts';
import { type BatchFunction, MapBatches, type ModuleFunction } from '../operators/dataflow/map-batches.ts';
import { MapRows } from '../operators/dataflow/map-rows.ts';
import { type NamedExpression, Project, type Projection } from '../operators/dataflow/project.ts';
import { Sample } from '../operators/dataflow/sample.ts';
import { SortRows } from '../operators/dataflow/sort-rows.ts';
import { Limit } from '../operators/dataflow/top-rows.ts';
import { EXCHANGE, EXCHANGE_IN_FILES } from '../operators/exchange/exchanged-rows.ts';
import { Distinct, Repartition, Wide } from '../operators/exchange/wide-operators.ts';
import { AggregateColumn, count } from './aggregates.ts';
import { requireByColumn, requireList, requireNames, requireOperator, requireSink } from './check-objects.ts';
import { checkOptions, checkSeed, runOptionNames } from './check-options.ts';
import { col, Column, lit } from './expressions.ts';
import { coalesce } from './functions.ts';
import type { Dataset } from './dataset.ts';
import { aggregationsOf, grouped, pivoted } from './grouped-rows.ts';
import { explainRows } from './inspect/explain-rows.ts';
import { type ColumnSummary, summarize } from './inspect/summaries.ts';
import { textTable } from './inspect/text-table.ts';
import { checkModule } from './inspect/user-modules.ts';
import {
  type AsOfKeys,
  type AsOfOptions,
  asOfPlan,
  crossPlan,
  type JoinKeys,
  type JoinOptions,
  joinPlan,
} from './join-plan.ts';
import { namedKeys, type OrderKey } from './order-keys.ts';
import type {
  Aggregated,
  AnyRow,
  ElementOf,
  Flat,
  IfKnown,
  Joined,
  NameOf,
  Renamed,
  Selected,
  With,
} from './row-types.ts';
import { runRows } from './run-rows.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import { isColumn, projected, windowed, WindowFunction, without } from './windows.ts';
import { writeInto } from './writers.ts';

/** Most parts into which a task divides its rows. */
const MOST_PARTS = 1024;

export interface SampleOptions {
  /** Default 0. */
  readonly seed?: number;
  /** Columns whose values decide, so that rows with equal values stay together; default: all. */
  readonly by?: readonly string[];
}

export interface MapBatchesOptions {
  /** The columns of the batches that the function returns; default: its input's columns. */
  readonly schema?: Schema;
}

/**
 * Rows of named columns that are read on demand: the methods of all data, named as in Spark's DataFrame.
 * `Row` has the columns as the compiler knows them.
 */
export abstract class Rows<Row extends object = AnyRow> implements AsyncIterable<RecordBatch> {
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
   * All rows as plain objects, in memory; 64-bit integers as bigint, dates and timestamps as Dates, times of
   * day and durations as milliseconds, decimals as numbers if a number has all their digits, else as text,
   * UUIDs as text, lists as arrays. A Date has whole milliseconds: `col('at').cast('utf8')` and Arrow
   * (`collect`, `stream`) have microseconds and the time zone.
   */
  async toArray(options: RunOptions = {}): Promise<Flat<Row>[]> {
    const rows: unknown[] = [];
    for await (const batch of await this.stream(options)) {
      const rowAt = plainRows(batch.schema, batch.data.children);
      for (let row = 0; row < batch.numRows; row++) rows.push(rowAt(row));
    }
    return rows as Flat<Row>[];
  }

  /** The first row as a plain object; undefined if there are no rows. */
  async first(options: RunOptions = {}): Promise<Flat<Row> | undefined> {
    for await (const batch of await this.stream(options))
      if (batch.numRows > 0) return plainRows(batch.schema, batch.data.children)(0) as Flat<Row>;
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
  async describe(...names: readonly NameOf<Row>[]): Promise<ColumnSummary[]> {
    requireNames('describe', names);
    return summarize(this, names.length === 0 ? undefined : names);
  }

  /** @internal The rows of a plan over this one. */
  abstract over<Made extends object = Row>(plan: LogicalPlan): Dataset<Made>;

  /** These rows through one more operator, of the library or your own. */
  pipe<Made extends object = AnyRow>(operator: Operator): Dataset<Made> {
    requireOperator(operator);
    return this.over(andThen(this.plan, operator));
  }

  /**
   * Only these columns, in this order: names, or named expressions: `select('user',
   * col('r').times(2).as('x'))`.
   */
  select<const Columns extends readonly (NameOf<Row> | Column)[]>(
    ...columns: Columns
  ): Dataset<Selected<Row, Columns[number]>> {
    if (columns.length === 0) throw new UsageError('select takes one column or more');
    const named = columns.map((column: string | Column) => {
      if (typeof column === 'string') return { name: column, value: col(column).expression };
      if (!(column instanceof Column))
        throw new UsageError(`select takes names and columns, got ${shown(column)}`, adviceFor(column));
      return { name: column.name ?? column.toString(), value: column.expression };
    });
    return this.over(projected(this.plan, { kind: 'select', columns: named }));
  }

  /** All columns except these. */
  drop<const Name extends NameOf<Row>>(...names: readonly Name[]): Dataset<IfKnown<Row, Omit<Row, Name>>> {
    requireNames('drop', names);
    return this.#project({ kind: 'drop', names });
  }

  /** Renames the column `from` to `to`. */
  withColumnRenamed<From extends NameOf<Row>, To extends string>(
    from: From,
    to: To,
  ): Dataset<Renamed<Row, From, To>> {
    requireNames('withColumnRenamed', [from, to]);
    return this.#project({ kind: 'rename', from, to });
  }

  /**
   * Adds or replaces a column: `withColumn('rating', log1p(col('plays')))`, `withColumn('n', rowNumber().over({
   * partitionBy: 'user', orderBy: 'ts' }))`. A window function does not keep the order of rows.
   */
  withColumn<Name extends string, Value>(
    name: Name,
    value: Column<string, Value>,
  ): Dataset<With<Row, Record<Name, Value>>> {
    requireNames('withColumn', [name]);
    return this.#with({ [name]: value });
  }

  /** Adds or replaces several columns, all computed from the original columns. */
  withColumns<const Values extends Readonly<Record<string, Column>>>(
    values: Values,
  ): Dataset<With<Row, ColumnValues<Values>>> {
    return this.#with(values);
  }

  #with<Made extends object>(values: Readonly<Record<string, Column>>): Dataset<Made> {
    requireByColumn('withColumns', values, "{ rating: col('plays') }");
    const columns = Object.entries(values).map(([name, value]) => ({
      name,
      value: expressionOf(value, name),
    }));
    return this.over(projected(this.plan, { kind: 'with', columns }));
  }

  /**
   * The rows for which a condition is true: `filter(col('rating').ge(3.5))`. A window function in it is computed
   * over all rows, before any is removed: `filter(rowNumber().over({ partitionBy: 'user', orderBy: 'ts' }).le(3))`.
   */
  filter(condition: Column): Dataset<Row> {
    const value = expressionOf(condition, 'filter');
    const { plan, columns, hidden } = windowed(this.plan, [{ name: 'condition', value }]);
    return this.over(without(andThen(plan, new Filter(columns[0].value)), hidden));
  }

  /** Same as `filter`. */
  where(condition: Column): Dataset<Row> {
    return this.filter(condition);
  }

  /**
   * Converts columns: `cast({ rating: 'float32' })`. A value that cannot be converted is an error, or becomes
   * null.
   */
  cast<const Types extends { readonly [Name in NameOf<Row>]?: ValueType }>(
    types: Types,
    onError: 'error' | 'null' = 'error',
  ): Dataset<With<Row, { -readonly [Name in keyof Types]: ValueOf<Types[Name] & ValueType> }>> {
    requireByColumn('cast', types, "{ rating: 'float32' }");
    return this.#with(
      Object.fromEntries(
        Object.entries<ValueType>(types as Readonly<Record<string, ValueType>>).map(([name, type]) => [
          name,
          col(name).cast(type, onError),
        ]),
      ),
    );
  }

  /** The rows without a null in these columns; default: in any column. */
  dropNulls<const Name extends NameOf<Row> = NameOf<Row>>(
    ...names: readonly Name[]
  ): Dataset<With<Row, { [Each in Name]: NonNullable<Row[Each]> }>> {
    requireNames('dropNulls', names);
    return this.pipe(new DropNulls(names.length === 0 ? undefined : names));
  }

  /**
   * A row for each element of a column of lists, with the other columns repeated: `explode('genres')`. A null
   * or empty list gives no row, or with `{ keepEmpty: true }` one with a null.
   */
  explode<const Name extends NameOf<Row>>(
    name: Name,
    options: { readonly keepEmpty?: boolean } = {},
  ): Dataset<With<Row, Record<Name, ElementOf<NonNullable<Row[Name]>>>>> {
    requireNames('explode', [name]);
    checkOptions('explode', options, ['keepEmpty'], '{ keepEmpty: true }');
    const { keepEmpty = false } = options;
    if (typeof keepEmpty !== 'boolean')
      throw new UsageError(`keepEmpty of explode must be true or false, got ${shown(keepEmpty)}`);
    return this.pipe(new Explode(name, keepEmpty));
  }

  /** Replaces nulls by values, by column: `fillNulls({ rating: 0 })`. */
  fillNulls<const Name extends NameOf<Row>>(
    values: Readonly<Record<Name, Plain>>,
  ): Dataset<With<Row, { [Each in Name]: NonNullable<Row[Each]> }>> {
    requireByColumn('fillNulls', values, '{ rating: 0 }');
    return this.#with(
      Object.fromEntries(
        Object.entries<Plain>(values).map(([name, value]) => [name, coalesce(col(name), lit(value))]),
      ),
    );
  }

  /**
   * Applies your own function to each batch: in the threads if it is named by a module (`{ module:
   * import.meta.url, name: 'clean', args }`), else in the calling thread. It must be pure: a thread may call
   * it twice for the same rows.
   */
  mapBatches<Made extends object = AnyRow>(
    apply: BatchFunction | ModuleFunction,
    options: MapBatchesOptions = {},
  ): Dataset<Made> {
    checkOptions('mapBatches', options, ['schema'], '{ schema }');
    if (typeof apply !== 'function') checkModule(apply);
    return this.pipe(new MapBatches(apply, options.schema));
  }

  /**
   * Applies your own function to each row as a plain object, as `toArray` gives it, in the threads: for what
   * columns cannot say. `mapRows({ module, name: 'clean', args }, { schema })`. It returns the row to replace
   * it with, of the schema's columns: numbers, texts, booleans, dates and timestamps (a Date, or milliseconds);
   * a column that is left out is null. Running it throws UsageError with the module and the row for a function
   * that throws and for a value of another type. It must be pure, and is slower than column expressions.
   */
  mapRows<Made extends object = AnyRow>(
    apply: ModuleFunction,
    options: MapBatchesOptions = {},
  ): Dataset<Made> {
    checkOptions('mapRows', options, ['schema'], '{ schema }');
    checkModule(apply, 'mapRows');
    return this.pipe(new MapRows(apply, options.schema));
  }

  /**
   * The rows of this side with the columns of the other side's rows that have equal keys:
   * `ratings.join(movies, 'item')`, `ratings.join(users, { left: 'user', right: 'id' }, 'left')`. The result
   * has the keys once, under this side's names. Running it throws UsageError if keys are missing or their
   * types cannot be compared, and if another column name is on both sides, unless there is a suffix: `{ how:
   * 'left', suffix: '_right' }`. The other side is held in memory; the order of rows is not guaranteed.
   * Default: an inner join.
   */
  join<
    Other extends object,
    const On extends JoinKeys<NameOf<Row>, NameOf<Other>>,
    const How extends JoinKind | JoinOptions = 'inner',
  >(other: Rows<Other>, on: On, how?: How): Dataset<Joined<Row, Other, On, How>> {
    return this.over(joinPlan([this, other], on, how));
  }

  /** Each row with each row of the other side. The smaller side is held in memory. */
  crossJoin<Other extends object>(
    other: Rows<Other>,
    options: Pick<JoinOptions, 'suffix'> = {},
  ): Dataset<Joined<Row, Other, [], 'inner'>> {
    return this.over(crossPlan([this, other], options));
  }

  /**
   * Each row with the columns of the other side's latest row at or before its time, among rows with equal keys:
   * `orders.asOfJoin(prices, { on: 'item', at: 'ts' })`. Of rows at the same time it takes the last in input
   * order; a null time matches nothing. `strict`: before its time only. Rows without a match are left out, or
   * with `how: 'left'` have nulls. The other side's time is kept if it has another name: `at: { left:
   * 'ordered', right: 'since' }`. The other side is held in memory; otherwise as `join`.
   */
  asOfJoin<Other extends object, const Options extends AsOfOptions<NameOf<Row>, NameOf<Other>>>(
    other: Rows<Other>,
    options: Options,
  ): Dataset<Joined<Row, Other, AsOfKeys<Options>, Options>> {
    return this.over(asOfPlan([this, other], options));
  }

  /**
   * Sorts the rows by keys: column names, `col('rating').desc()`, or `{ column, descending, nulls }`. Nulls
   * come first when ascending and last when descending, unless the key says otherwise; NaN is the largest
   * number. Rows with equal keys keep their order. With a following `limit`, only the first rows are kept in
   * memory.
   */
  orderBy(...keys: readonly OrderKey<NameOf<Row>>[]): Dataset<Row> {
    return this.over(sorted(this.plan, keys));
  }

  /** Same as `orderBy`. */
  sort(...keys: readonly OrderKey<NameOf<Row>>[]): Dataset<Row> {
    return this.orderBy(...keys);
  }

  /** The first rows, in the order of files, or of `orderBy`. */
  limit(rows: number): Dataset<Row> {
    if (!Number.isSafeInteger(rows) || rows < 0)
      throw new UsageError(`limit takes a whole number of rows, got ${shown(rows)}`);
    return this.pipe(new Limit(rows));
  }

  /**
   * About a fraction of the rows, drawn by a hash of their values and the seed: the same rows for any row
   * order, and equal rows together.
   */
  sample(fraction: number, options: SampleOptions = {}): Dataset<Row> {
    checkOptions('sample', options, ['seed', 'by'], '{ seed: 42 }');
    if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1))
      throw new UsageError(`the fraction of a sample must be from 0 to 1, got ${shown(fraction)}`);
    const { seed = 0, by } = options;
    checkSeed(seed);
    if (by !== undefined) requireList('by of sample', by);
    return this.pipe(new Sample(fraction, { seed, ...(by && { by }) }));
  }

  /**
   * Groups rows with equal values of columns or expressions, to aggregate each group:
   * `groupBy('item').agg(count(), mean('rating'))`, `groupBy(truncate(col('ts'),
   * 'month').as('month')).count()`.
   */
  groupBy<const Keys extends readonly (NameOf<Row> | Column)[]>(
    ...keys: Keys
  ): GroupedRows<Selected<Row, Keys[number]>> {
    return new GroupedRows(this.plan, keys, (plan) => this.over(plan));
  }

  /** The rows without those that equal an earlier row in all columns. */
  distinct(): Dataset<Row> {
    return this.over(fromSource(new Wide(new Distinct(), [this.plan])));
  }

  /** The first row, in input order, for each combination of these columns' values; default: all columns. */
  dropDuplicates(...keys: readonly NameOf<Row>[]): Dataset<Row> {
    requireNames('dropDuplicates', keys);
    return this.over(fromSource(new Wide(new Distinct(keys.length === 0 ? undefined : keys), [this.plan])));
  }

  /**
   * The same rows in a number of parts, concatenated: rows with equal values of the columns are in the same
   * part; without columns, rows are divided evenly. Within a part rows keep their order.
   */
  repartition(parts: number, ...columns: readonly NameOf<Row>[]): Dataset<Row> {
    if (!Number.isSafeInteger(parts) || parts < 1 || parts > MOST_PARTS)
      throw new UsageError(
        `repartition takes a number of parts from 1 to ${MOST_PARTS}, got ${shown(parts)}`,
      );
    requireNames('repartition', columns);
    return this.over(fromSource(new Wide(new Repartition(parts, columns), [this.plan])));
  }

  #project<Made extends object>(projection: Projection): Dataset<Made> {
    return this.pipe(new Project(projection));
  }
}

function expressionOf(value: unknown, what: string): Expression {
  if (value instanceof Column) return value.expression;
  throw new UsageError(
    `${what} takes an expression such as col('rating').ge(3.5), got ${shown(value)}`,
    adviceFor(value),
  );
}

/** How to write a value of another kind as an expression. */
function adviceFor(value: unknown): { readonly advice?: string } {
  if (typeof value === 'string') return { advice: "Text in SQL's form is read by expr('rating >= 3.5')" };
  if (value instanceof WindowFunction)
    return { advice: "Name its window: rowNumber().over({ partitionBy: 'user', orderBy: 'ts' })" };
  if (value instanceof AggregateColumn)
    return {
      advice: "Write groupBy('user').agg(sum('plays')), or sum('plays').over({ partitionBy: 'user' })",
    };
  return {};
}

/** The values of columns by name. */
type ColumnValues<Columns> = {
  -readonly [Name in keyof Columns]: Columns[Name] extends Column<string, infer Value> ? Value : unknown;
};

/** Most values that a pivot finds by itself. */
const MOST_FOUND = 1000;

/** Groups whose aggregates become a column for each value of a column, the result of `pivot`. */
interface PivotedRows<Result> {
  agg(...aggregates: readonly AggregateColumn[]): Result;
}

/** Rows grouped by keys, the result of `groupBy`. Immutable. */
class GroupedRows<Keys extends object> {
  readonly #keys: readonly NamedExpression[];
  readonly #plan: LogicalPlan;
  readonly #over: <Made extends object>(plan: LogicalPlan) => Dataset<Made>;

  /** @internal */
  constructor(
    plan: LogicalPlan,
    keys: readonly (string | Column)[],
    over: <Made extends object>(plan: LogicalPlan) => Dataset<Made>,
  ) {
    this.#plan = plan;
    this.#over = over;
    this.#keys = keys.map((key) => {
      if (typeof key === 'string') return { name: key, value: col(key).expression };
      if (key instanceof Column) return { name: key.name ?? key.toString(), value: key.expression };
      throw new UsageError(`groupBy takes names and columns, got ${shown(key)}`, {
        ...(Array.isArray(key) && { advice: "Write groupBy('user', 'item')" }),
      });
    });
    const names = this.#keys.map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) < i);
    if (twice !== undefined) throw new UsageError(`groupBy: the key "${twice}" is named twice`);
  }

  /**
   * One row for each group, with its keys and aggregates: `agg(count(), mean('rating').as('average'))`. Nulls
   * in a key are equal, as are NaNs, and -0 and 0. Without keys there is exactly one row, even for no input
   * rows.
   */
  agg<const Columns extends readonly AggregateColumn[]>(
    ...aggregates: Columns
  ): Dataset<With<Keys, Aggregated<Columns[number]>>> {
    return this.#over(grouped(this.#plan, this.#keys, aggregationsOf(aggregates)));
  }

  /**
   * A column for each of the values of a column, with the aggregates of a group's rows that have the value:
   * `groupBy('user').pivot('kind', ['buy', 'view']).agg(count())` has the columns user, buy and view; of
   * several aggregates `buy_count`, ... A group without a row of the value has null. Without `values`, a first
   * pass over the rows finds them, in ascending order, and `agg` gives a promise, which throws UsageError for
   * more than 1,000.
   */
  pivot(column: string | Column): PivotedRows<Promise<Dataset>>;
  pivot(column: string | Column, values: readonly Plain[]): PivotedRows<Dataset>;
  pivot(column: string | Column, values?: readonly Plain[]): PivotedRows<Promise<Dataset> | Dataset> {
    if (typeof column !== 'string' && !(column instanceof Column))
      throw new UsageError(`pivot takes the name of a column or an expression, got ${shown(column)}`);
    const by = typeof column === 'string' ? col(column) : column;
    if (values !== undefined) requirePivotValues(values);
    const over = (from: Column, list: readonly Plain[], aggregates: readonly AggregateColumn[]) =>
      this.#over<AnyRow>(
        pivoted(this.#plan, this.#keys, { by: from, values: list }, aggregationsOf(aggregates)),
      );
    return {
      agg: (...aggregates) => {
        if (values !== undefined) return over(by, values, aggregates);
        return this.#valuesOf(by).then((found) => over(by.cast('utf8'), found, aggregates));
      },
    };
  }

  /** The distinct values of an expression as texts, in ascending order. */
  async #valuesOf(by: Column): Promise<(string | null)[]> {
    const distinct = this.#over(this.#plan).select(by.as('value')).distinct().orderBy('value');
    const texts = distinct.limit(MOST_FOUND + 1).select(col('value').cast('utf8').as('value'));
    const found = (await texts.toArray()) as { value: string | null }[];
    if (found.length <= MOST_FOUND) return found.map(({ value }) => value);
    throw new UsageError(
      `pivot by ${by.toString()} finds more than ${formatCount(MOST_FOUND)} values, each a column of the result`,
      { advice: "Give the values: pivot('kind', ['buy', 'view'])" },
    );
  }

  /** The number of rows of each group, as a column `count`. */
  count(): Dataset<With<Keys, { count: bigint }>> {
    return this.agg(count());
  }
}

function requirePivotValues(values: readonly Plain[]): void {
  if (!Array.isArray(values) || values.length === 0)
    throw new UsageError(
      `the values of pivot must be a list of one or more, got ${Array.isArray(values) ? 'none' : shown(values)}`,
    );
  const again = values.find((value, i) => values.slice(0, i).includes(value));
  if (again !== undefined) throw new UsageError(`pivot has the value ${shown(again)} twice`);
}

/** The plan of `orderBy`. Keys that are expressions become columns, which are removed after sorting. */
function sorted(plan: LogicalPlan, keys: readonly OrderKey[]): LogicalPlan {
  const columns: NamedExpression[] = [];
  const named = namedKeys('orderBy', keys, (value) => {
    if (isColumn(value)) return value.name;
    const name = `sort key ${columns.length + 1}`;
    columns.push({ name, value });
    return name;
  });
  const input = columns.length === 0 ? plan : projected(plan, { kind: 'with', columns, areNew: true });
  const names = columns.map(({ name }) => name);
  return without(andThen(input, new SortRows(named)), names);
}

interface ExplainRowsOptions extends Pick<RunOptions, 'signal'> {
  /** Also runs the plan and adds measurements: rows, bytes and times of tasks and exchanges. */
  readonly analyze?: boolean;
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
