import { UsageError } from '../engine/errors.ts';
import type { Expression, Plain } from '../engine/expressions/expression.ts';
import { literal } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import { andThen, fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import { type NamedExpression, Project } from '../operators/dataflow/project.ts';
import type { Frame, FrameEnd } from '../operators/dataflow/window/window-frames.ts';
import type { WindowName } from '../operators/dataflow/window/window-functions.ts';
import type { WindowCall, WindowOptions } from '../operators/dataflow/window/window-rows.ts';
import { Windows, Wide } from '../operators/exchange/wide-operators.ts';
import { checkOptions } from './check-options.ts';
import { Column } from './expressions.ts';
import { namedKeys, type OrderKey } from './order-keys.ts';

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

/** A window function over a window: a value of `withColumn` and `withColumns`. Immutable. */
export class WindowColumn {
  /** @internal */
  readonly function: Call;
  /** @internal */
  readonly window: Window;

  /** @internal */
  constructor(call: Call, window: Window) {
    checkOptions(
      'over',
      window,
      ['partitionBy', 'orderBy', 'rows', 'range'],
      "{ partitionBy: 'user', orderBy: 'ts' }",
    );
    frameOf(window);
    [this.function, this.window] = [call, window];
  }
}

/** A function that needs a window: `rowNumber().over({ partitionBy: 'user', orderBy: 'ts' })`. Immutable. */
export class WindowFunction {
  readonly #call: Call;

  /** @internal */
  constructor(call: Call) {
    this.#call = call;
  }

  /** The function over the rows of a window. Throws UsageError for a window that is not valid. */
  over(window: Window): WindowColumn {
    return new WindowColumn(this.#call, window);
  }
}

/** The number of the row in its partition, from 1. */
export const rowNumber = (): WindowFunction => new WindowFunction({ call: 'rowNumber' });
/** The number of the first row with equal keys, from 1: 1, 1, 3. */
export const rank = (): WindowFunction => new WindowFunction({ call: 'rank' });
/** The number of the distinct keys so far: 1, 1, 2. */
export const denseRank = (): WindowFunction => new WindowFunction({ call: 'denseRank' });
/**
 * The number of the session in its partition, from 1: a new one begins where a time or number is more than
 * `gap` (times: milliseconds) after the row before.
 */
export const sessionNumber = (time: string | Column, gap: number): WindowFunction => {
  if (typeof gap !== 'number' || !(gap >= 0))
    throw new UsageError(`the gap of a session must be a number from 0, got ${shown(gap)}`);
  return new WindowFunction({ call: 'session', value: valueOf('sessionNumber', time), gap });
};
/** The value some rows before, 1 by default: `lag('price', 1, { default: 0 })`. A null offset gives null. */
export const lag = (value: string | Column, offset: number | Column = 1, options: ShiftOptions = {}) =>
  shifted('lag', value, offset, options);
/** The value some rows after, 1 by default: `lead('ts')`. A null offset gives null. */
export const lead = (value: string | Column, offset: number | Column = 1, options: ShiftOptions = {}) =>
  shifted('lead', value, offset, options);

function shifted(
  call: 'lag' | 'lead',
  value: string | Column,
  offset: number | Column,
  options: ShiftOptions,
): WindowFunction {
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
      `${unit} of a window must be two ${unit === 'rows' ? 'whole ' : ''}numbers such as [-6, 0], got ${shown(ends)}`,
    );
  const [from, to] = ends;
  if (from > to || from === Infinity || to === -Infinity)
    throw new UsageError(`the frame of a window ends before it begins: ${unit} [${from}, ${to}]`);
  return { unit, from: endOf(from), to: endOf(to) };
}

const endOf = (end: number): FrameEnd => (Number.isFinite(end) ? end : 'unbounded');

/** The plan with further columns, some of them window functions. */
export function withWindows(
  plan: LogicalPlan,
  columns: Readonly<Record<string, Column | WindowColumn>>,
): LogicalPlan {
  const computed: NamedExpression[] = [];
  const nameOf = (value: Expression): string => {
    if (value.kind === 'column') return value.name;
    const name = `window value ${computed.length + 1}`;
    computed.push({ name, value });
    return name;
  };
  const added: NamedExpression[] = [];
  const byPartitions = new Map<string, Map<string, WindowOptions & { readonly calls: WindowCall[] }>>();
  let results = 0;
  for (const [name, given] of Object.entries(columns)) {
    if (!(given instanceof WindowColumn)) {
      added.push({ name, value: valueOf(name, given) });
      continue;
    }
    const { function: own, window } = given;
    const { call, value, offset, gap, ignoreNulls, default: outside } = own;
    const partitionBy = listOf(window.partitionBy).map((key) => nameOf(valueOf('partitionBy', key)));
    const orderBy = namedKeys('orderBy of a window', listOf(window.orderBy), nameOf);
    const frame = frameOf(window);
    const args = {
      ...(value && { value: nameOf(value) }),
      ...(offset !== undefined && { offset: typeof offset === 'number' ? offset : nameOf(offset) }),
      ...(ignoreNulls && { ignoreNulls }),
      ...(gap !== undefined && { gap }),
      ...(frame && { frame }),
    };
    const windows = mapIn(byPartitions, JSON.stringify(partitionBy), () => new Map());
    const { calls } = mapIn(windows, JSON.stringify(orderBy), () => ({ partitionBy, orderBy, calls: [] }));
    const result = () => `window ${++results}`;
    const column = { kind: 'column', name: result() } as const;
    calls.push({ name: column.name, call, ...args });
    if (outside === undefined) {
      added.push({ name, value: column });
      continue;
    }
    const inside = { kind: 'column', name: result() } as const;
    calls.push({ name: inside.name, call: call === 'lag' ? 'lagInside' : 'leadInside', ...args });
    const branches = [{ when: inside, value: column }];
    added.push({ name, value: { kind: 'when', branches, otherwise: outside } });
  }
  const input =
    computed.length === 0 ? plan : andThen(plan, new Project({ kind: 'with', columns: computed }));
  const windowed = [...byPartitions.values()].reduce(
    (below, windows) => fromSource(new Wide(new Windows([...windows.values()]), [below])),
    input,
  );
  const hidden = Array.from({ length: results }, (_, i) => `window ${i + 1}`);
  const names = [...computed.map(({ name }) => name), ...hidden];
  return andThen(
    andThen(windowed, new Project({ kind: 'with', columns: added })),
    new Project({ kind: 'drop', names }),
  );
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
