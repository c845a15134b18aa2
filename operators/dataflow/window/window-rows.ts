import { type Data, Field, Null, type RecordBatch, Schema } from 'apache-arrow';
import { CapacityError, UsageError } from '../../../engine/errors.ts';
import { isInteger, valueTypeOf } from '../../../engine/expressions/types.ts';
import { formatCount } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import {
  compareRows,
  type KeyWords,
  printKeys,
  type SortKey,
  SortKeys,
} from '../../../engine/sorting/sort-keys.ts';
import { joinData, nullData } from '../../../engine/stream/join-data.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { columnAt, RowOperator, sameRows } from '../row-operator.ts';
import { requireOrder } from '../sort-rows.ts';
import {
  boundsOf,
  type Frame,
  type FrameBounds,
  isOfPeers,
  orderValues,
  type Partitions,
  partitionsOf,
  unitsOf,
} from './window-frames.ts';
import {
  newState,
  reachOf,
  shiftState,
  windowFunctions,
  type WindowInput,
  type WindowName,
  type WindowState,
} from './window-functions.ts';

/** A window function over columns. */
export interface WindowCall {
  /** Name of the column that it adds. */
  readonly name: string;
  readonly call: WindowName;
  /** Column of the argument; absent for ranks and for a `count` of rows. */
  readonly value?: string;
  /** Distance of `lag` and `lead`: rows, or a column of numbers; default 1. */
  readonly offset?: number | string;
  readonly ignoreNulls?: boolean;
  readonly gap?: number;
  /** Default: up to the rows with equal keys; without order the whole partition. */
  readonly frame?: Frame;
}

/** Windows with the same partitions and order. */
export interface WindowOptions {
  readonly partitionBy: readonly string[];
  readonly orderBy: readonly SortKey[];
  readonly calls: readonly WindowCall[];
}

/** The order in which `WindowRows` takes its rows. */
export function windowOrder({ partitionBy, orderBy }: Omit<WindowOptions, 'calls'>): SortKey[] {
  const keys = [...partitionBy.map((column) => ({ column })), ...orderBy];
  return keys.filter(({ column }, i) => keys.findIndex((key) => key.column === column) === i);
}

/** Rows of one partition that are held at a time, if its functions need no more. */
const HELD_ROWS = 1 << 18;

/** The frame of functions without one: up to the rows with equal keys, or without order the partition. */
export function defaultFrame({ orderBy }: Pick<WindowOptions, 'orderBy'>): Frame {
  return { unit: 'range', from: 'unbounded', to: orderBy.length === 0 ? 'unbounded' : 0 };
}

/** Rows that `WindowRows` holds at a time. */
interface HeldLimits {
  /** If it holds this number of rows of one partition, it gives those whose values are known; default 2^18. */
  readonly rows?: number;
  /** If it must hold more, it throws CapacityError. */
  readonly most?: number;
  /** Text for a memory budget in which it may hold all rows. */
  readonly budget?: string;
}

/**
 * Adds a column for each window function. The rows come sorted by `windowOrder`. It holds the rows on which
 * values that are not known yet depend: a whole partition if a frame ends with it.
 */
export class WindowRows extends RowOperator {
  readonly name = 'window-rows';
  readonly takesAllRows = true;
  readonly keepsBatches = true;
  readonly options: WindowOptions;
  readonly #limits: HeldLimits;

  constructor(options: WindowOptions, limits: HeldLimits = {}) {
    super([options, limits]);
    [this.options, this.#limits] = [options, limits];
    for (const { call, frame } of options.calls) this.#check(call, frame);
  }

  #check(call: WindowName, frame: Frame | undefined): void {
    const { orderBy } = this.options;
    const needsOrder = windowFunctions[call].needsOrder || frame?.unit === 'range';
    if (orderBy.length === 0 && needsOrder) throw needsAnOrder(call, frame);
    if (frame?.unit === 'range' && !isOfPeers(frame) && orderBy.length !== 1)
      throw new UsageError(`a range of distances takes one key of orderBy, got ${orderBy.length}`);
  }

  /** True if it must hold all rows of a partition, since values depend on its last row. */
  get holdsPartitions(): boolean {
    return this.options.calls.some(({ call, offset = 1, ignoreNulls, frame }) => {
      if (windowFunctions[call].isFramed) return (frame ?? defaultFrame(this.options)).to === 'unbounded';
      return typeof offset === 'string' || (ignoreNulls && !(call.startsWith('lag') && offset >= 0));
    });
  }

  describe(): JsonObject {
    const { partitionBy, orderBy, calls } = this.options;
    return {
      ...(partitionBy.length > 0 && { partitions: [...partitionBy] }),
      ...(orderBy.length > 0 && { by: printKeys(orderBy) }),
      functions: calls.map(printWindowCall),
    };
  }

  protected override readColumns(): readonly string[] {
    const { partitionBy, orderBy, calls } = this.options;
    const read = calls.flatMap(({ value, offset }) =>
      [value, offset].filter((name) => typeof name === 'string'),
    );
    return [...partitionBy, ...orderBy.map(({ column }) => column), ...read];
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const added = new Set(this.options.calls.map(({ name }) => name));
    return super.requiredColumns(wanted?.filter((name) => !added.has(name)));
  }

  override outputSchema(input: Schema): Schema {
    requireOrder(input, windowOrder(this.options));
    const names = input.fields.map(({ name }) => name);
    const added = this.options.calls.map((call) => {
      const { type = new Null(), metadata } = fieldOf(input, names, call.value) ?? {};
      this.#checkOffset(call, input, names);
      const result = windowFunctions[call.call].type(type);
      if (result === undefined)
        throw new UsageError(`${call.call} over a window takes no values of type ${type}`);
      this.#checkRange(call, input);
      return new Field(call.name, result, true, metadata);
    });
    return new Schema([...input.fields, ...added]);
  }

  #checkOffset({ call, offset }: WindowCall, { fields }: Schema, names: readonly string[]): void {
    if (typeof offset !== 'string') return;
    const { type } = fields[columnAt(offset, names, 'as the offset of a window function')];
    const own = valueTypeOf(type);
    if (own !== 'null' && !isInteger(own))
      throw new UsageError(`the offset of ${call.replace('Inside', '')} must be whole numbers, got ${type}`, {
        advice: "Cast it: col('n').cast('int64')",
      });
  }

  #checkRange({ frame }: WindowCall, { fields }: Schema): void {
    if (frame?.unit !== 'range' || isOfPeers(frame)) return;
    const [{ column }] = this.options.orderBy;
    const type = fields.find(({ name }) => name === column)?.type;
    if (type !== undefined && unitsOf(type) === undefined)
      throw new UsageError(`a range of distances takes numbers or times to order by, got ${type}: ${column}`);
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const order = windowOrder(this.options);
    const partition = partitionKeys(this.options, input.schema);
    const all = new SortKeys(input.schema, order);
    const held = new HeldRows(this.options, schema, this.#limits);
    let last: RecordBatch | undefined;
    for await (const batch of input) {
      if (batch.numRows === 0) continue;
      const flags = changes(all, batch, last);
      changes(partition, batch, last).forEach((isChange, row) => (flags[row] += isChange));
      last = batch.slice(batch.numRows - 1);
      const start = Math.max(0, flags.lastIndexOf(2));
      if (flags[start] === 2) {
        held.add({ batch: batch.slice(0, start), flags: flags.subarray(0, start) });
        yield* held.finish();
      }
      held.add({ batch: batch.slice(start), flags: flags.subarray(start) });
      yield* held.giveKnown();
    }
    yield* held.finish();
  }
}

/** The rows of partitions, of which the last may go on. */
class HeldRows {
  readonly #options: WindowOptions;
  readonly #schema: Schema;
  readonly #limits: Required<HeldLimits>;
  #pieces: Piece[] = [];
  #rows = 0;
  /** The number of rows that are held for later ones alone. */
  #given = 0;
  #limit: number;
  #states: readonly WindowState[] = [];

  constructor(options: WindowOptions, schema: Schema, limits: HeldLimits) {
    [this.#options, this.#schema] = [options, schema];
    this.#limits = { rows: HELD_ROWS, most: Infinity, budget: '', ...limits };
    this.#limit = this.#limits.rows;
    this.#states = options.calls.map(newState);
  }

  add(piece: Piece): void {
    if (piece.flags.length === 0) return;
    this.#pieces.push(piece);
    this.#rows += piece.flags.length;
  }

  /** All rows: their partitions end here. */
  *finish(): Generator<RecordBatch> {
    if (this.#rows > this.#given) yield* this.#computed(this.#inputs(false), this.#rows);
    this.#pieces = [];
    [this.#rows, this.#given, this.#limit] = [0, 0, this.#limits.rows];
    this.#states = this.#options.calls.map(newState);
  }

  /** If many rows are held: those whose values do not depend on later rows of their partition. */
  *giveKnown(): Generator<RecordBatch> {
    if (this.#rows < this.#limit) return;
    const inputs = this.#inputs(true);
    const reaches = this.#options.calls.map(({ call }) => reachOf(call));
    const known = Math.min(...inputs.map((input, i) => reaches[i].known(input)));
    if (known > this.#given) {
      yield* this.#computed(inputs, known);
      const needed = Math.min(known - 1, ...inputs.map((input, i) => reaches[i].needed(input, known)));
      this.#drop(Math.max(0, needed));
      this.#given = known - Math.max(0, needed);
    }
    const { rows, most, budget } = this.#limits;
    this.#limit = Math.max(rows, 2 * this.#rows);
    if (this.#rows > most)
      throw new CapacityError(
        `the window functions need ${formatCount(this.#rows)} rows of one partition at a time, and the memory budget leaves room for ${formatCount(most)}`,
        {
          phase: 'window-rows',
          advice: `Raise memoryBudget to ${budget} or more, or partition or order by more columns`,
        },
      );
  }

  #inputs(continues: boolean): WindowInput[] {
    const rows = new Rows(this.#pieces, this.#options);
    return this.#options.calls.map((call, i) => ({
      ...rows.inputOf(call),
      from: this.#given,
      to: rows.length,
      continues,
      state: this.#states[i],
    }));
  }

  /** The rows that were not given yet before row `to`, with their new columns. */
  *#computed(inputs: readonly WindowInput[], to: number): Generator<RecordBatch> {
    const from = this.#given;
    const columns = inputs.map((input, i) =>
      windowFunctions[this.#options.calls[i].call].compute({ ...input, to }),
    );
    let start = 0;
    for (const { batch } of this.#pieces) {
      const own = batch.slice(Math.max(0, from - start), Math.max(0, to - start));
      const at = Math.max(from, start) - from;
      start += batch.numRows;
      if (own.numRows === 0) continue;
      const added = columns.map((data) => data.slice(at, own.numRows));
      yield sameRows(own, this.#schema, [...own.data.children, ...added]);
    }
  }

  /** Drops the first rows. */
  #drop(rows: number): void {
    let left = rows;
    this.#pieces = this.#pieces.flatMap(({ batch, flags }) => {
      const dropped = Math.min(left, flags.length);
      left -= dropped;
      if (dropped === flags.length) return [];
      return [{ batch: batch.slice(dropped), flags: flags.subarray(dropped) }];
    });
    this.#rows -= rows;
    this.#states = this.#states.map((state) => shiftState(state, rows));
  }
}

/** The error of a window without order. */
export function needsAnOrder(call: WindowName, frame: Frame | undefined): UsageError {
  const name = call === 'session' ? 'sessionNumber' : call;
  return new UsageError(`${frame ? `a frame of ${frame.unit}` : name} needs an order of the rows`, {
    advice: "Name it: over({ partitionBy: 'user', orderBy: 'ts' })",
  });
}

function fieldOf({ fields }: Schema, names: readonly string[], name: string | undefined): Field | undefined {
  return name === undefined ? undefined : fields[columnAt(name, names, 'for a window function')];
}

function printWindowCall({ name, call, value, offset, ignoreNulls, frame }: WindowCall): string {
  const args = [value, offset].filter((one) => one !== undefined).join(', ');
  const ends = frame && ` ${frame.unit} ${frame.from} to ${frame.to}`;
  return `${call}(${args})${ignoreNulls ? ' ignore nulls' : ''}${ends ?? ''} as ${name}`;
}

/** Adjacent rows, and for each: 2 if it begins a partition, 1 if its keys differ from the row before, else 0. */
interface Piece {
  readonly batch: RecordBatch;
  readonly flags: Uint8Array;
}

/** The keys whose values are those of a partition. */
export function partitionKeys(options: WindowOptions, schema: Schema): SortKeys {
  return new SortKeys(schema, windowOrder(options).slice(0, new Set(options.partitionBy).size));
}

/** 1 for each row whose keys differ from the row before. The first row of all differs. */
export function changes(keys: SortKeys, batch: RecordBatch, before: RecordBatch | undefined): Uint8Array {
  const words = keys.of(batch);
  const changed = new Uint8Array(batch.numRows);
  changed[0] = before === undefined || compareRows(keys.of(before), 0, words, 0) !== 0 ? 1 : 0;
  if (words.texts.length > 0) markEach(words, changed);
  else for (const word of words.words) if (typeof word !== 'number') markWords(word, changed);
  return changed;
}

function markEach(words: KeyWords, changed: Uint8Array): void {
  for (let row = 1; row < changed.length; row++)
    changed[row] = compareRows(words, row - 1, words, row) === 0 ? 0 : 1;
}

function markWords(word: Uint32Array, changed: Uint8Array): void {
  for (let row = 1; row < changed.length; row++) if (word[row] !== word[row - 1]) changed[row] = 1;
}

/** The rows of whole partitions, joined, with the bounds that functions share. */
class Rows {
  readonly #pieces: readonly Piece[];
  readonly #options: WindowOptions;
  readonly #partitions: Partitions;
  readonly #columns = new Map<string, Data>();
  readonly #frames = new Map<string, FrameBounds>();

  constructor(pieces: readonly Piece[], options: WindowOptions) {
    [this.#pieces, this.#options] = [pieces, options];
    const flags = new Uint8Array(pieces.reduce((sum, { batch }) => sum + batch.numRows, 0));
    let row = 0;
    for (const piece of pieces) {
      flags.set(piece.flags, row);
      row += piece.flags.length;
    }
    this.#partitions = partitionsOf(flags);
  }

  get length(): number {
    return this.#partitions.rows;
  }

  inputOf({ call, value, offset = 1, ignoreNulls = false, gap = 0, frame }: WindowCall) {
    const column = value === undefined ? nullData(new Null(), 0) : this.#column(value);
    const field = new Schema([new Field('value', column.type, true)]);
    const spec = (windowFunctions[call].isFramed === true ? frame : undefined) ?? defaultFrame(this.#options);
    return {
      ...this.#partitions,
      value: column,
      spec,
      frame: this.#frame(spec),
      offset: typeof offset === 'string' ? this.#column(offset) : offset,
      ignoreNulls,
      gap,
      words: (own: Data, descending: boolean) =>
        new SortKeys(field, [{ column: 'value', descending, nulls: 'last' }]).ofChunks([[own]], own.length),
    };
  }

  /** A column of all pieces, and a null. */
  #column(name: string): Data {
    const known = this.#columns.get(name);
    if (known !== undefined) return known;
    const [{ batch }] = this.#pieces;
    const at = batch.schema.fields.findIndex((field) => field.name === name);
    const parts = this.#pieces.map((piece) => piece.batch.data.children[at]);
    const column = joinData(parts[0].type, parts, 1);
    this.#columns.set(name, column);
    return column;
  }

  #frame(frame: Frame): FrameBounds {
    const key = JSON.stringify(frame);
    const known = this.#frames.get(key);
    if (known !== undefined) return known;
    const [order] = this.#options.orderBy;
    const values =
      frame.unit === 'rows' || isOfPeers(frame)
        ? undefined
        : orderValues(this.#column(order.column), order.descending === true);
    const bounds = boundsOf(frame, this.#partitions, values);
    this.#frames.set(key, bounds);
    return bounds;
  }
}
