import { UsageError } from '../engine/errors.ts';
import {
  type ColumnName,
  type Expression,
  literal,
  partsOf,
  type Plain,
  withColumns,
} from '../engine/expressions/expression.ts';
import { print } from '../engine/expressions/print.ts';
import { shown } from '../engine/format.ts';
import { type SortKey, printKeys } from '../engine/sorting/sort-keys.ts';
import { andThen, fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import { type NamedExpression, Project, type Projection } from '../operators/dataflow/project.ts';
import type { Frame, FrameEnd } from '../operators/dataflow/window/window-frames.ts';
import type { WindowName } from '../operators/dataflow/window/window-functions.ts';
import {
  needsAnOrder,
  type WindowCall,
  type WindowOptions,
} from '../operators/dataflow/window/window-rows.ts';
import { Windows, Wide } from '../operators/exchange/wide-operators.ts';
import { checkOptions } from './check-options.ts';
import { Column, type SortOrder } from './expressions.ts';
import { type OrderKey, orderOf } from './order-keys.ts';

/**
 * The first and the last row of a frame, as distances from the current row: `[-6, 0]` are the current row and
 * six before it, `[-Infinity, Infinity]` the whole partition.
 */
export type FrameRange = readonly [from: number, to: number];

/** The rows that a window function sees from each row. */
export interface Window {
  /** Rows with equal values of these are a partition; default: all rows are one. */
  readonly partitionBy?: string | Column | readonly (string | Column)[];
  /** Keys as of `Dataset.orderBy`. */
  readonly orderBy?: OrderKey | readonly OrderKey[];
  /** A frame by the number of rows. Default: up to the rows with equal keys; without order, the partition. */
  readonly rows?: FrameRange;
  /** A frame by the distance of the only key of `orderBy`, in its unit; for times in milliseconds. */
  readonly range?: FrameRange;
}

export interface ShiftOptions {
  /** The value where the offset is outside the partition; default null. */
  readonly default?: Plain | Column;
  /** Counts only rows whose value is not null. */
  readonly ignoreNulls?: boolean;
}

/** A window function and its arguments. */
interface Call {
  readonly call: WindowName;
  readonly value?: Expression;
  readonly offset?: number | Expression;
  readonly ignoreNulls?: boolean;
  readonly default?: Expression;
  readonly gap?: number;
}

/** A window function with its window. */
interface Over extends Call {
  readonly partitionBy: readonly Expression[];
  readonly orderBy: readonly SortOrder[];
  readonly frame?: Frame;
}

/** A window function in an expression: the column of its results, which a plan computes first (`windowed`). */
interface WindowValue extends ColumnName {
  readonly over: Over;
}

/** @internal A function over a window as a column. Throws UsageError for a window that is not valid. */
export function overWindow<Value>(call: Call, window: Window): Column<string, Value> {
  checkOptions(
    'over',
    window,
    ['partitionBy', 'orderBy', 'rows', 'range'],
    "{ partitionBy: 'user', orderBy: 'ts' }",
  );
  const frame = frameOf(window);
  const over: Over = {
    ...call,
    partitionBy: listOf(window.partitionBy).map((key) => valueOf('partitionBy', key)),
    orderBy: listOf(window.orderBy).map((key) => orderOf('orderBy of a window', key)),
    ...(frame && { frame }),
  };
  if (frame && over.orderBy.length === 0) throw needsAnOrder(call.call, frame);
  const value: WindowValue = { kind: 'column', name: textOf(over), over };
  return new Column(value);
}

/** The name of a window function without a name: "sum(plays) over (by user order ts)". */
function textOf({ call, value, offset, partitionBy, orderBy, frame }: Over): string {
  const args = [value, offset].flatMap((arg) =>
    arg === undefined ? [] : [typeof arg === 'number' ? `${arg}` : print(arg)],
  );
  const keys = orderBy.map(({ expression, ...key }) => ({ ...key, column: print(expression) }) as SortKey);
  const window = [
    ...(partitionBy.length > 0 ? [`by ${partitionBy.map(print).join(', ')}`] : []),
    ...(keys.length > 0 ? [`order ${printKeys(keys).join(', ')}`] : []),
    ...(frame ? [`${frame.unit} ${frame.from} to ${frame.to}`] : []),
  ];
  return `${call}(${args.join(', ')}) over (${window.join(' ')})`;
}

/** A function that needs a window: `rowNumber().over({ partitionBy: 'user', orderBy: 'ts' })`. Immutable. */
export class WindowFunction<Value = unknown> {
  readonly #call: Call;

  /** @internal */
  constructor(call: Call) {
    this.#call = call;
  }

  /**
   * The function over the rows of a window: a column, also as a part of an expression, that is computed from
   * all rows of the data set. Throws UsageError for a window that is not valid.
   */
  over(window: Window): Column<string, Value> {
    return overWindow(this.#call, window);
  }
}

/** The number of the row in its partition, from 1. */
export const rowNumber = (): WindowFunction<bigint> => new WindowFunction({ call: 'rowNumber' });
/** The number of the first row with equal keys, from 1: 1, 1, 3. */
export const rank = (): WindowFunction<bigint> => new WindowFunction({ call: 'rank' });
/** The number of the distinct keys so far: 1, 1, 2. */
export const denseRank = (): WindowFunction<bigint> => new WindowFunction({ call: 'denseRank' });
/**
 * The number of the session in its partition, from 1: a new one begins where a time or number is more than
 * `gap` (times: milliseconds) after the row before.
 */
export const sessionNumber = (time: string | Column, gap: number): WindowFunction<bigint> => {
  if (typeof gap !== 'number' || !(gap >= 0))
    throw new UsageError(`the gap of a session must be a number from 0, got ${shown(gap)}`);
  return new WindowFunction({ call: 'session', value: valueOf('sessionNumber', time), gap });
};
/** The value some rows before, 1 by default: `lag('price', 1, { default: 0 })`. A null offset gives null. */
export const lag = <Value = unknown>(
  value: string | Column<string, Value>,
  offset: number | Column = 1,
  options: ShiftOptions = {},
): WindowFunction<Value | null> => shifted('lag', value, offset, options);
/** The value some rows after, 1 by default: `lead('ts')`. A null offset gives null. */
export const lead = <Value = unknown>(
  value: string | Column<string, Value>,
  offset: number | Column = 1,
  options: ShiftOptions = {},
): WindowFunction<Value | null> => shifted('lead', value, offset, options);

function shifted<Value>(
  call: 'lag' | 'lead',
  value: string | Column,
  offset: number | Column,
  options: ShiftOptions,
): WindowFunction<Value> {
  checkOptions(call, options, ['default', 'ignoreNulls'], '{ default: 0 }');
  const { default: outside, ignoreNulls = false } = options;
  if (typeof ignoreNulls !== 'boolean')
    throw new UsageError(`ignoreNulls of ${call} must be true or false, got ${shown(ignoreNulls)}`);
  if (!(offset instanceof Column) && !Number.isSafeInteger(offset))
    throw new UsageError(`the offset of ${call} must be a whole number or a column, got ${shown(offset)}`);
  return new WindowFunction({
    call,
    value: valueOf(call, value),
    offset: offset instanceof Column ? offset.expression : offset,
    ignoreNulls,
    ...(outside !== undefined && {
      default: outside instanceof Column ? outside.expression : literal(outside),
    }),
  });
}

function valueOf(call: string, value: unknown): Expression {
  if (typeof value === 'string') return { kind: 'column', name: value };
  if (value instanceof Column) return value.expression;
  throw new UsageError(`${call} takes the name of a column or an expression, got ${shown(value)}`);
}

function frameOf({ rows, range }: Window): Frame | undefined {
  if (rows !== undefined && range !== undefined)
    throw new UsageError('a window has a frame of rows or of a range, not both');
  const [unit, ends] = rows === undefined ? (['range', range] as const) : (['rows', rows] as const);
  if (ends === undefined) return undefined;
  const isPair = Array.isArray(ends) && ends.length === 2;
  const isNumber = (end: unknown) =>
    typeof end === 'number' &&
    (unit === 'rows' && Number.isFinite(end) ? Number.isSafeInteger(end) : end === end);
  if (!isPair || !ends.every(isNumber))
    throw new UsageError(
      `${unit} of a window must be two ${unit === 'rows' ? 'whole ' : ''}numbers such as [-6, 0], got ${Array.isArray(ends) ? `[${ends.map(shown).join(', ')}]` : shown(ends)}`,
    );
  const [from, to] = ends;
  if (from > to || from === Infinity || to === -Infinity)
    throw new UsageError(`the frame of a window ends before it begins: ${unit} [${from}, ${to}]`);
  return { unit, from: endOf(from), to: endOf(to) };
}

const endOf = (end: number): FrameEnd => (Number.isFinite(end) ? end : 'unbounded');

/** True for a column by its name, without a point, which may be that of a struct's field. */
export function isColumn(value: Expression): value is ColumnName {
  return value.kind === 'column' && !isWindow(value) && !value.name.includes('.');
}

function isWindow(value: ColumnName): value is WindowValue {
  return 'over' in value;
}

/** True if a window function is a part of the expression. */
export function hasWindow(value: Expression): boolean {
  return value.kind === 'column' ? isWindow(value) : partsOf(value).some(hasWindow);
}

/** A plan, and expressions over its columns. */
interface Windowed {
  readonly plan: LogicalPlan;
  readonly columns: readonly NamedExpression[];
  /** Columns of the plan that only the expressions need. */
  readonly hidden: readonly string[];
}

/** Computes the window functions in expressions over a plan's rows as columns, which the expressions then name. */
export function windowed(plan: LogicalPlan, columns: readonly NamedExpression[]): Windowed {
  if (!columns.some(({ value }) => hasWindow(value))) return { plan, columns, hidden: [] };
  const windows = new WindowPlan();
  const named = columns.map(({ name, value }) => ({ name, value: windows.resolved(value) }));
  return { plan: windows.over(plan), columns: named, hidden: windows.hidden };
}

/** A projection whose columns may have window functions. `with` and `select`: as in `Projection`. */
export function projected(
  plan: LogicalPlan,
  projection: Extract<Projection, { readonly kind: 'with' | 'select' }>,
): LogicalPlan {
  const { kind, columns } = projection;
  const all = windowed(plan, columns);
  const made = andThen(all.plan, new Project({ ...projection, columns: all.columns }));
  return kind === 'select' ? made : without(made, all.hidden);
}

/** The plan without columns that it has for its own use. */
export function without(plan: LogicalPlan, names: readonly string[]): LogicalPlan {
  return names.length === 0 ? plan : andThen(plan, new Project({ kind: 'drop', names }));
}

/** Collects window functions, each of them once, by their partitions and orders. */
class WindowPlan {
  readonly #computed: NamedExpression[] = [];
  readonly #byPartitions = new Map<string, Map<string, WindowOptions & { readonly calls: WindowCall[] }>>();
  readonly #results = new Map<string, Expression>();
  readonly #names: string[] = [];

  get hidden(): readonly string[] {
    return [...this.#computed.map(({ name }) => name), ...this.#names];
  }

  /** The expression over the columns of the plan that `over` makes. */
  resolved(expression: Expression): Expression {
    return withColumns(expression, (own) =>
      isWindow(own) ? mapIn(this.#results, JSON.stringify(own.over), () => this.#added(own.over)) : own,
    );
  }

  #added({ call, value, offset, gap, ignoreNulls, frame, default: outside, ...window }: Over): Expression {
    const partitionBy = window.partitionBy.map((key) => this.#nameOf(key));
    const orderBy = window.orderBy.map(({ expression, descending, nulls }) => ({
      column: this.#nameOf(expression),
      ...(descending && { descending }),
      ...(nulls && { nulls }),
    }));
    const args = {
      ...(value && { value: this.#nameOf(value) }),
      ...(offset !== undefined && { offset: typeof offset === 'number' ? offset : this.#nameOf(offset) }),
      ...(ignoreNulls && { ignoreNulls }),
      ...(gap !== undefined && { gap }),
      ...(frame && { frame }),
    };
    const windows = mapIn(this.#byPartitions, JSON.stringify(partitionBy), () => new Map());
    const { calls } = mapIn(windows, JSON.stringify(orderBy), () => ({ partitionBy, orderBy, calls: [] }));
    const add = (own: WindowName): Expression => {
      const name = `window ${this.#names.length + 1}`;
      this.#names.push(name);
      calls.push({ name, call: own, ...args });
      return { kind: 'column', name };
    };
    const result = add(call);
    if (outside === undefined) return result;
    const inside = add(call === 'lag' ? 'lagInside' : 'leadInside');
    return { kind: 'when', branches: [{ when: inside, value: result }], otherwise: this.resolved(outside) };
  }

  #nameOf(value: Expression): string {
    if (isColumn(value)) return value.name;
    const name = `window value ${this.#computed.length + 1}`;
    this.#computed.push({ name, value });
    return name;
  }

  over(plan: LogicalPlan): LogicalPlan {
    const columns = this.#computed;
    const input = columns.length === 0 ? plan : projected(plan, { kind: 'with', columns, areNew: true });
    return [...this.#byPartitions.values()].reduce(
      (below, windows) => fromSource(new Wide(new Windows([...windows.values()]), [below])),
      input,
    );
  }
}

function listOf<T>(given: T | readonly T[] | undefined): readonly T[] {
  if (given === undefined) return [];
  return Array.isArray(given) ? given : [given as T];
}

function mapIn<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key) ?? make();
  map.set(key, known);
  return known;
}
