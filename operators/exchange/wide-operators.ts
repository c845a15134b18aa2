import type { Schema } from 'apache-arrow';
import { type Bound, call } from '../../engine/expressions/expression.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import {
  andThen,
  executePlan,
  type LogicalPlan,
  rootSource,
  schemaOf,
} from '../../engine/stream/logical-plan.ts';
import type { Description, Operator, Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { Aggregate, type AggregateOptions } from '../dataflow/aggregate/aggregate.ts';
import { columnAt } from '../dataflow/row-operator.ts';
import { DistinctRows } from '../dataflow/distinct-rows.ts';
import { selectColumns } from '../dataflow/project.ts';
import { SortRows } from '../dataflow/sort-rows.ts';
import { FirstRows } from '../dataflow/window/first-rows.ts';
import { windowFunctions, type WindowName } from '../dataflow/window/window-functions.ts';
import {
  type WindowCall,
  windowOrder,
  type WindowOptions,
  WindowRows,
} from '../dataflow/window/window-rows.ts';
import type { Exchange } from './exchange.ts';

/** An input of a wide operator: the rows to exchange. */
interface WideInput {
  /** Columns that are needed; default: all. */
  readonly columns: readonly string[] | undefined;
  /** Operators on the rows of each split, before the exchange. */
  readonly before: readonly Operator[];
  readonly by: Exchange;
}

/**
 * An operator that needs rows from all splits of the input, such as a group or a sort. An exchange first
 * brings rows that belong together into one part.
 */
export interface WideOperator extends Description {
  outputSchema(input: Schema): Schema;
  /** `wanted`: needed columns of the result; default: all. */
  input(schema: Schema, wanted: readonly string[] | undefined): WideInput;
  /** Operators on the rows of each part. */
  readonly after: readonly Operator[];
  /** Number of parts, if it should not depend on the size of the rows. */
  readonly parts?: number;
  /**
   * Columns of the result. A filter that uses only these may be moved before the exchange. 'all' if each row
   * of the result is a row of the input, so that every filter may be moved.
   */
  readonly filterable: readonly string[] | 'all';
  /**
   * Returns an operator that computes only the needed columns of the result, whose columns are `names` now.
   * Undefined if no column can be left out.
   */
  keeping?(
    needed: readonly string[],
    names: readonly string[],
  ): { readonly operator: WideOperator; readonly columns: readonly string[] } | undefined;
}

/** The result of a wide operator on a plan. */
export class Wide implements Source {
  readonly operator: WideOperator;
  readonly inputs: readonly LogicalPlan[];

  constructor(operator: WideOperator, inputs: readonly LogicalPlan[]) {
    [this.operator, this.inputs] = [operator, inputs];
  }

  of(inputs: readonly LogicalPlan[]): Wide {
    return new Wide(this.operator, inputs);
  }

  get name(): string {
    return this.operator.name;
  }

  get replayable(): boolean {
    return this.inputs.every((plan) => rootSource(plan).replayable);
  }

  describe(): JsonObject {
    return this.operator.describe();
  }

  async schema(_needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    return this.operator.outputSchema(await schemaOf(this.inputs[0], undefined, signal));
  }

  /** The plan of the rows to exchange, and how to divide them. */
  async rowsToExchange(
    wanted: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly plan: LogicalPlan; readonly by: Exchange }> {
    const [input] = this.inputs;
    const schema = await schemaOf(input, undefined, signal);
    this.operator.outputSchema(schema);
    const { columns, before, by } = this.operator.input(schema, wanted);
    const isAll = columns === undefined || columns.length === schema.fields.length;
    const select = isAll ? [] : [selectColumns(columns)];
    return { plan: [...select, ...before].reduce(andThen, input), by };
  }

  /** Runs in the calling thread without an exchange: all rows are one part. */
  async execute(ctx: ExecutionContext, columns?: readonly string[]): Promise<BatchStream> {
    const { plan } = await this.rowsToExchange(columns, ctx.signal);
    const rows = await executePlan(plan, ctx);
    return this.operator.after.reduce((stream, operator) => operator.execute(stream, ctx), rows);
  }
}

/**
 * Computes aggregates: one row for each distinct combination of the keys' values. Tasks first aggregate the
 * rows of their split, and after the exchange merge the results of each part.
 */
export class GroupRows implements WideOperator {
  readonly name = 'group-rows';
  readonly after: readonly Aggregate[];
  /** Without keys all rows are one group, even for an empty input. */
  readonly parts?: 1;
  readonly #options: Omit<AggregateOptions, 'step'>;
  readonly #partial: Aggregate;

  constructor(options: Omit<AggregateOptions, 'step'>) {
    this.#options = options;
    this.#partial = new Aggregate({ ...options, step: 'partial' });
    this.after = [new Aggregate({ ...options, step: 'final' })];
    if (options.keys.length === 0) this.parts = 1;
  }

  get filterable(): readonly string[] {
    return this.#options.keys;
  }

  /** Keeps at least one aggregate. */
  keeping(needed: readonly string[]): ReturnType<NonNullable<WideOperator['keeping']>> {
    const { keys, aggregations: all } = this.#options;
    const wanted = all.filter(({ name }) => needed.includes(name));
    const aggregations = keys.length + wanted.length > 0 ? wanted : all.slice(0, 1);
    if (aggregations.length === all.length) return undefined;
    const columns = [...keys, ...aggregations.map(({ name }) => name)];
    return { operator: new GroupRows({ keys, aggregations }), columns };
  }

  describe(): JsonObject {
    const { keys, aggregates } = this.#partial.describe();
    return { keys, aggregates };
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(this.#partial.outputSchema(input));
  }

  input(): WideInput {
    const { keys } = this.#options;
    return {
      columns: undefined,
      before: [this.#partial],
      by: keys.length === 0 ? { kind: 'evenly' } : { kind: 'hash', columns: [...keys] },
    };
  }
}

/** Keeps the first row of each combination of values of some columns. Default: all columns. */
export class Distinct implements WideOperator {
  readonly name = 'distinct';
  readonly after: readonly DistinctRows[];
  readonly #keys: readonly string[] | undefined;

  constructor(given?: readonly string[]) {
    const keys = given && [...new Set(given)];
    this.#keys = keys;
    this.after = [new DistinctRows({ step: 'whole', ...(keys && { keys }) })];
  }

  get filterable(): readonly string[] | 'all' {
    return this.#keys ?? 'all';
  }

  describe(): JsonObject {
    return { columns: this.#keys ? [...this.#keys] : 'all' };
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(input);
  }

  input(schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const keys = this.#keys;
    const partial = new DistinctRows({ step: 'partial', ...(keys && { keys }) });
    const names = schema.fields.map(({ name }) => name);
    const columns = keys && wanted && names.filter((name) => wanted.includes(name) || keys.includes(name));
    return {
      columns,
      before: [partial],
      by: { kind: 'hash', columns: [...(keys ?? names)] },
    };
  }
}

/**
 * Sorts all rows by some keys: the exchange divides them into ranges of the keys, and each range is sorted.
 */
export class OrderRows implements WideOperator {
  readonly name = 'order-rows';
  readonly after: readonly [SortRows];
  readonly filterable = 'all';

  constructor(keys: readonly SortKey[]) {
    this.after = [new SortRows(keys)];
  }

  describe(): JsonObject {
    return this.after[0].describe();
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(input);
  }

  input(_schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const [sort] = this.after;
    return { columns: sort.requiredColumns(wanted), before: [], by: rangesOf(sort) };
  }
}

function rangesOf({ keys }: SortRows): Exchange {
  return { kind: 'range', keys: keys.map((key) => ({ ...key })) };
}

/**
 * Adds the results of window functions. The rows of a partition are exchanged to one part, which sorts its
 * rows for each window; all rows, if they are one partition, to ranges of the order. `windows` have the same
 * partitions.
 */
export class Windows implements WideOperator {
  readonly name = 'windows';
  readonly after: readonly Operator[];
  readonly filterable: readonly string[];
  /** Without keys all rows are one partition, in one part unless they are sorted by ranges. */
  readonly parts?: 1;
  readonly #windows: readonly WindowOptions[];
  readonly #by: Exchange;
  readonly #first: FirstRows | undefined;

  /** `first`: removes rows before the exchange. */
  constructor(windows: readonly WindowOptions[], first?: FirstRows) {
    [this.#windows, this.#first] = [windows, first];
    this.filterable = windows[0].partitionBy;
    this.after = windows.flatMap((options) => {
      if (options.calls.length === 0) return [];
      const order = windowOrder(options);
      return [...(order.length === 0 ? [] : [new SortRows(order)]), new WindowRows(options)];
    });
    const [sort] = this.after;
    if (this.filterable.length > 0) this.#by = { kind: 'hash', columns: [...this.filterable] };
    else if (sort instanceof SortRows) this.#by = rangesOf(sort);
    else [this.#by, this.parts] = [{ kind: 'evenly' }, 1];
  }

  describe(): JsonObject {
    const windows = this.#windows.map((options) => new WindowRows(options).describe());
    return { windows, ...(this.#first && { first: this.#first.describe().predicate }) };
  }

  /** Without a window whose results are needed, the rows are only exchanged. */
  keeping(
    needed: readonly string[],
    names: readonly string[],
  ): ReturnType<NonNullable<WideOperator['keeping']>> {
    const all = this.#windows.flatMap(({ calls }) => calls);
    const unused = new Set(all.map(({ name }) => name).filter((name) => !needed.includes(name)));
    if (unused.size === 0) return undefined;
    const windows = this.#windows.map((options) => ({
      ...options,
      calls: options.calls.filter(({ name }) => !unused.has(name)),
    }));
    const used = windows.filter(({ calls }) => calls.length > 0);
    const operator = new Windows(used.length === 0 ? windows.slice(0, 1) : used, this.#first);
    return { operator, columns: names.filter((name) => !unused.has(name)) };
  }

  /**
   * The operator for a consumer that takes only rows within these bounds: if one is on a rank, rows that are
   * beyond it in their split need no exchange. Undefined if no row can be left out, since other functions may
   * need it.
   */
  within(bounds: readonly Bound[]): Windows | undefined {
    const [options, ...others] = this.#windows;
    if (this.#first !== undefined || others.length > 0) return undefined;
    const bound = bounds.find(
      ({ column, operator }) =>
        ['<', '<=', '='].includes(operator) &&
        options.calls.some(({ name, call: own }) => name === column && windowFunctions[own].isRank),
    );
    const calls = options.calls.filter(({ name }) => name === bound?.column);
    if (bound === undefined || !options.calls.every((one) => needsEarlierRows(one, calls[0].call)))
      return undefined;
    const { column, operator, values } = bound;
    const most = call(operator === '<' ? '<' : '<=', { kind: 'column', name: column }, values[0]);
    return new Windows(this.#windows, new FirstRows({ ...options, calls }, most));
  }

  outputSchema(input: Schema): Schema {
    return this.after.reduce((schema, operator) => operator.outputSchema(schema), input);
  }

  input(_schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const columns = this.after.reduceRight<readonly string[] | undefined>(
      (names, operator) => operator.requiredColumns(names),
      wanted && [...new Set([...wanted, ...this.filterable])],
    );
    return { columns, before: this.#first === undefined ? [] : [this.#first], by: this.#by };
  }
}

/** True if a function needs no rows but those whose rank is at most the row's own, and the row itself. */
function needsEarlierRows({ call: own, offset = 1, frame }: WindowCall, rank: WindowName): boolean {
  if (own.startsWith('lag')) return typeof offset === 'number' && offset >= 0;
  if (!windowFunctions[own].isFramed) return !own.startsWith('lead');
  const { unit, to } = frame ?? { unit: 'range', to: 0 };
  return to !== 'unbounded' && (to < 0 || (to === 0 && (unit === 'rows' || rank !== 'rowNumber')));
}

/**
 * Divides rows into a given number of parts, by the hash of some columns or round-robin. The rows do not
 * change.
 */
export class Repartition implements WideOperator {
  readonly name = 'repartition';
  readonly parts: number;
  readonly after = [];
  readonly filterable = 'all';
  readonly #columns: readonly string[];

  constructor(parts: number, columns: readonly string[]) {
    [this.parts, this.#columns] = [parts, columns];
  }

  describe(): JsonObject {
    const columns = this.#columns;
    return { parts: this.parts, ...(columns.length > 0 && { columns: [...columns] }) };
  }

  outputSchema(input: Schema): Schema {
    const names = input.fields.map(({ name }) => name);
    for (const name of this.#columns) columnAt(name, names, 'to repartition by');
    return input;
  }

  input(_schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const columns = this.#columns;
    return {
      columns: wanted && [...new Set([...wanted, ...columns])],
      before: [],
      by: columns.length === 0 ? { kind: 'evenly' } : { kind: 'hash', columns: [...columns] },
    };
  }
}
