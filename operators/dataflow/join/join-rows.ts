import { type Data, DataType, Field, RecordBatch, Schema } from 'apache-arrow';
import { throwIfAborted, UsageError } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { UNKNOWN_ROW, RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { concatenate } from '../../../engine/numbers/concatenate.ts';
import { compareRows, type KeyWords, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { joinData, nullData } from '../../../engine/stream/join-data.ts';
import type { BinaryOperator, Side } from '../../../engine/stream/operator.ts';
import { type BatchStream, batchStream } from '../../../engine/stream/stream.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { batchOf, columnOf, columnsAs, takeRows } from '../row-operator.ts';
import {
  type JoinColumn,
  joinColumns,
  joinKinds,
  type JoinParams,
  keepsLeftOnly,
  keepsUnmatched,
  otherSide,
  requiredOf,
} from './join-columns.ts';

type Streams = Readonly<Record<Side, BatchStream>>;

/**
 * Caches what was built from the build side's rows, for the thread's next task with the same rows. Garbage
 * collection may drop it.
 */
class HeldOnce<Held extends object> {
  readonly #made = new Map<string, WeakRef<Held>>();

  /** The result of `make` for the rows, cached. `use`: the keys and columns that it reads. */
  async of(rows: BatchStream, use: readonly (readonly string[])[], make: () => Promise<Held>): Promise<Held> {
    if (rows.identity === undefined) return make();
    const key = JSON.stringify([rows.identity, ...use]);
    const known = this.#made.get(key)?.deref();
    if (known !== undefined) return known;
    const held = await make();
    for (const [other, made] of this.#made) if (made.deref() === undefined) this.#made.delete(other);
    this.#made.set(key, new WeakRef(held));
    return held;
  }
}

const buildSides = new HeldOnce<BuildSide>();
const keySets = new HeldOnce<KeyNumbers>();

/**
 * Joins the rows of two inputs with equal keys. The side `build` is held in memory, the other is streamed.
 * Rows come in the order of the streamed side, the matches of a row in the order of the build side, and rows
 * of the build side without a match last. Semi and anti joins always keep the order of the left. Nulls match
 * nothing; NaN equals NaN, and -0 equals 0.
 */
export class JoinRows implements BinaryOperator {
  readonly name = 'join';
  readonly params: JoinParams;

  constructor(params: JoinParams) {
    const { kind, keys, build } = params;
    if (!joinKinds.includes(kind))
      throw new UsageError(`a join must be ${joinKinds.join(', ')}, got ${kind}`);
    if (keys.left.length === 0 || keys.left.length !== keys.right.length)
      throw new UsageError('a join needs the same number of keys on both sides, and one at least');
    for (const side of ['left', 'right'] as const) {
      const twice = keys[side].find((name, i) => keys[side].indexOf(name) < i);
      if (twice !== undefined) throw new UsageError(`join: the key "${twice}" is named twice`);
    }
    if (params.asOf !== undefined && (build !== 'right' || (kind !== 'inner' && kind !== 'left')))
      throw new UsageError(`an asOf join must be inner or left, got ${kind}`);
    this.params = params;
  }

  get build(): Side {
    return this.params.build;
  }

  describe(): JsonObject {
    return { ...describeJoin(this.params), holds: `the ${this.params.build}` };
  }

  portable() {
    return { operator: 'join', args: [this.params as unknown as JsonObject] };
  }

  outputSchema(left: Schema, right: Schema): Schema {
    return new Schema(joinColumns(this.params, { left, right }).map(({ field }) => field));
  }

  requiredColumns(wanted: readonly string[] | undefined, left: Schema, right: Schema) {
    return requiredOf(this.params, { left, right }, wanted);
  }

  execute(left: BatchStream, right: BatchStream, ctx: ExecutionContext): BatchStream {
    const columns = joinColumns(this.params, { left: left.schema, right: right.schema });
    const schema = new Schema(columns.map(({ field }) => field));
    const { kind, build } = this.params;
    const isFilter = keepsLeftOnly(kind) && build === 'right';
    const batches = isFilter
      ? this.#filter({ left, right }, schema)
      : this.#join({ left, right }, columns, schema);
    return batchStream(schema, checked(batches, ctx));
  }

  /** Rows of the left with a match in the right (semi), or without one (anti). */
  async *#filter({ left, right }: Streams, schema: Schema): AsyncGenerator<RecordBatch> {
    const { kind, keys } = this.params;
    const numbers = await keySets.of(right, [keys.right], () => keySetOf(right, keys.right));
    for await (const batch of left) {
      if (batch.numRows === 0) continue;
      const positions = positionsOf(numbers.find(batch, keys.left), kind === 'semi');
      if (positions.length === 0) continue;
      const kept = columnsAs(batch, schema);
      yield positions.length === batch.numRows ? kept : takeRows(kept, positions);
    }
  }

  async *#join(
    streams: Streams,
    columns: readonly JoinColumn[],
    schema: Schema,
  ): AsyncGenerator<RecordBatch> {
    const { kind, keys, build, asOf } = this.params;
    const probe = otherSide(build);
    const names = columns.flatMap((column) => column[build] ?? []);
    const rows = streams[build];
    const held = await buildSides.of(rows, [keys[build], names, asOf ? [asOf.right] : []], () =>
      BuildSide.read(rows, keys[build], names, asOf?.right),
    );
    const limit = JoinedBatches.limitOf(columns);
    const isLeftOnly = keepsLeftOnly(kind);
    const keepsHeld = keepsUnmatched(kind, build);
    const join = new HashJoin(held, {
      keepsProbe: keepsUnmatched(kind, probe),
      notesMatches: isLeftOnly || keepsHeld,
      limit,
    });
    const made = new JoinedBatches(schema, columns, this.params, held);
    for await (const batch of streams[probe]) {
      if (batch.numRows === 0) continue;
      const found = asOf
        ? held.latest(batch, keys.left, asOf.left, asOf.strict === true)
        : held.find(batch, keys[probe]);
      if (isLeftOnly) join.note(found);
      else for (const matches of join.matches(found)) yield* made.ofMatches(batch, matches);
    }
    if (isLeftOnly || keepsHeld) yield* made.ofHeld(join.heldRows(kind === 'semi'), limit);
  }
}

async function keySetOf(rows: BatchStream, keys: readonly string[]): Promise<KeyNumbers> {
  const numbers = new KeyNumbers(rows.schema, keys);
  for await (const batch of rows) {
    const own = keys.map((name) => columnOf(batch, name));
    if (batch.numRows > 0) numbers.add(own, batch.numRows);
  }
  return numbers;
}

/** The kind, the keys and the suffix, for plans. */
export function describeJoin({ kind, keys, suffix, asOf }: JoinParams): JsonObject {
  const at = asOf && `${asOf.left} ${asOf.strict ? '>' : '>='} ${asOf.right}`;
  const on = keys.left.map((name, i) => (name === keys.right[i] ? name : `${name} = ${keys.right[i]}`));
  return { how: kind, on, ...(at !== undefined && { at }), ...(suffix !== undefined && { suffix }) };
}

async function* checked(
  batches: AsyncIterable<RecordBatch>,
  ctx: ExecutionContext,
): AsyncGenerator<RecordBatch> {
  for await (const batch of batches) {
    throwIfAborted(ctx.signal, 'join');
    yield batch;
  }
}

/** Positions of the rows whose key is known, or is not. */
function positionsOf(keys: Uint32Array, known: boolean): Uint32Array {
  const positions = new Uint32Array(keys.length);
  let count = 0;
  for (let row = 0; row < keys.length; row++)
    if ((keys[row] !== UNKNOWN_ROW) === known) positions[count++] = row;
  return positions.subarray(0, count);
}

/**
 * Assigns numbers to the keys of rows. A row with a null key gets none, since a null equals no other value.
 */
class KeyNumbers {
  readonly #numbers: RowNumbers;

  constructor(schema: Schema, keys: readonly string[]) {
    this.#numbers = new RowNumbers(keys.map((name) => fieldOf(schema, name)));
  }

  /** Number of distinct keys. */
  get size(): number {
    return this.#numbers.size;
  }

  /** Number of each row's key, assigned if the key is new; UNKNOWN_ROW for a null. */
  add(keys: readonly Data[], rows: number): Uint32Array {
    const nullable = keys.filter((data) => DataType.isNull(data.type) || hasNulls(data));
    if (nullable.length === 0) return this.#numbers.add(keys, rows);
    const whole = wholeRows(nullable, rows);
    const taken = keys.map((data) => takeData(data, whole));
    const own = this.#numbers.add(taken, whole.length);
    const codes = new Uint32Array(rows).fill(UNKNOWN_ROW);
    for (let i = 0; i < whole.length; i++) codes[whole[i]] = own[i];
    return codes;
  }

  /** Number of each row's key if it was added before, else UNKNOWN_ROW. */
  find(batch: RecordBatch, names: readonly string[]): Uint32Array {
    return this.#numbers.find(
      names.map((name) => columnOf(batch, name)),
      batch.numRows,
    );
  }
}

/** Positions of the rows without a null. */
function wholeRows(columns: readonly Data[], rows: number): Uint32Array {
  const isNull = new Uint8Array(rows);
  for (const data of columns) {
    if (DataType.isNull(data.type)) isNull.fill(1);
    else for (let row = 0; row < rows; row++) if (isNullAt(data, row)) isNull[row] = 1;
  }
  const whole = new Uint32Array(rows);
  let count = 0;
  for (let row = 0; row < rows; row++) if (isNull[row] === 0) whole[count++] = row;
  return whole.subarray(0, count);
}

function fieldOf({ fields }: Schema, name: string): Field {
  return fields.find((field) => field.name === name) as Field;
}

/**
 * One column of the build side, all rows together; and the same column with a null appended, which is taken
 * for probe rows without a match.
 */
interface HeldColumn {
  readonly values: Data;
  readonly withNull: Data;
}

/**
 * The side of a join that is heldColumn in memory, indexed by key. Distinct keys are keyNumbersOf 0, 1, 2, ... The rows
 * with key k, ascending, are rows[offsets[k]] to rows[offsets[k + 1] - 1]. Rows with a null key are not in
 * `rows`.
 *
 *     keys      b a b null a      numbers  b: 0, a: 1
 *     offsets   0 2 4             rows     0 2 1 4
 */
export class BuildSide {
  /** Number of each row's key; UNKNOWN_ROW for a null. */
  readonly keyOfRow: Uint32Array;
  readonly offsets: Uint32Array;
  readonly rows: Uint32Array;
  readonly #numbers: KeyNumbers;
  readonly #columns: ReadonlyMap<string, HeldColumn>;
  /** The times of an asOf join: the rows of each key are in their order. */
  readonly #times: Times | undefined;

  private constructor(
    numbers: KeyNumbers,
    keyOfRow: Uint32Array,
    columns: ReadonlyMap<string, HeldColumn>,
    times: Data | undefined,
  ) {
    [this.#numbers, this.#columns, this.keyOfRow] = [numbers, columns, keyOfRow];
    [this.offsets, this.rows] = rowsByKey(keyOfRow, numbers.size);
    if (times === undefined) return;
    const { words } = (this.#times = new Times(times));
    const { rows, offsets } = this;
    const compare = (a: number, b: number) => compareRows(words, a, words, b) || a - b;
    for (let key = 0; key < numbers.size; key++) rows.subarray(offsets[key], offsets[key + 1]).sort(compare);
  }

  /** Reads all rows of a stream. `names`: the columns to keep; `time`: the column of an asOf join's times. */
  static async read(
    input: BatchStream,
    keys: readonly string[],
    names: readonly string[],
    time: string | undefined,
  ): Promise<BuildSide> {
    const { schema } = input;
    const parts = new Map(
      [...keys, ...names, ...(time === undefined ? [] : [time])].map((name) => [name, [] as Data[]]),
    );
    for await (const batch of input)
      if (batch.numRows > 0) for (const [name, own] of parts) own.push(columnOf(batch, name));
    const numbers = new KeyNumbers(schema, keys);
    const keyOfRow = keyNumbersOf(
      numbers,
      keys.map((name) => ({ type: fieldOf(schema, name).type, parts: parts.get(name) as Data[] })),
    );
    const times =
      time === undefined ? undefined : joinData(fieldOf(schema, time).type, parts.get(time) as Data[]);
    const columns = new Map<string, HeldColumn>();
    for (const name of names) {
      const own = parts.get(name) as Data[];
      columns.set(name, heldColumn(joinData(fieldOf(schema, name).type, own, 1)));
      // Frees the parts, so that only one column at a time is in memory twice.
      own.length = 0;
    }
    return new BuildSide(numbers, keyOfRow, columns, times);
  }

  get rowCount(): number {
    return this.keyOfRow.length;
  }

  /** Number of distinct keys. */
  get keys(): number {
    return this.#numbers.size;
  }

  /** True if each number that is found has exactly one row: by keys, or by `latest`. */
  get isUnique(): boolean {
    return this.#times !== undefined || this.rows.length === this.keys;
  }

  column(name: string): HeldColumn {
    const found = this.#columns.get(name);
    if (found === undefined) throw new Error(`the heldColumn side of the join has no column "${name}"`);
    return found;
  }

  /** Number of each row's key if the build side has it, else UNKNOWN_ROW. */
  find(batch: RecordBatch, keys: readonly string[]): Uint32Array {
    return this.#numbers.find(batch, keys);
  }

  /**
   * For each row the position in `rows` of the last row with its key at or before its time (`strict`: before
   * it), else UNKNOWN_ROW.
   */
  latest(batch: RecordBatch, keys: readonly string[], time: string, strict: boolean): Uint32Array {
    const [found, held, column] = [this.find(batch, keys), this.#times as Times, columnOf(batch, time)];
    const [words, mayBeNull, most] = [held.wordsOf(column), hasNulls(column), strict ? -1 : 0];
    for (let row = 0; row < found.length; row++) {
      const key = found[row];
      if (key === UNKNOWN_ROW) continue;
      const first = this.offsets[key];
      let [low, high] = [first, mayBeNull && isNullAt(column, row) ? first : this.offsets[key + 1]];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (compareRows(held.words, this.rows[middle], words, row) <= most) low = middle + 1;
        else high = middle;
      }
      found[row] = low === first ? UNKNOWN_ROW : low - 1;
    }
    return found;
  }
}

/** Times in an order with nulls last. */
class Times {
  readonly words: KeyWords;
  readonly #schema: Schema;
  readonly #keys: SortKeys;

  constructor(times: Data) {
    this.#schema = new Schema([new Field('time', times.type, true)]);
    this.#keys = new SortKeys(this.#schema, [{ column: 'time', nulls: 'last' }]);
    this.words = this.wordsOf(times);
  }

  wordsOf(times: Data): KeyWords {
    return this.#keys.of(batchOf(this.#schema, times.length, [times]));
  }
}

interface KeyParts {
  readonly type: DataType;
  readonly parts: readonly Data[];
}

/**
 * Numbers the keys of all rows. A single 32-bit key column is keyNumbersOf at once: the range of all keys shows
 * if a table indexed by key can be used.
 */
function keyNumbersOf(numbers: KeyNumbers, keys: readonly KeyParts[]): Uint32Array {
  const [{ type, parts }] = keys;
  if (keys.length === 1 && DataType.isInt(type) && type.bitWidth === 32) {
    const all = joinData(type, parts);
    return numbers.add([all], all.length);
  }
  return concatenate(
    Uint32Array,
    parts.map(({ length }, i) =>
      numbers.add(
        keys.map((key) => key.parts[i]),
        length,
      ),
    ),
  );
}

function heldColumn(withNull: Data): HeldColumn {
  return { values: withNull.slice(0, withNull.length - 1), withNull };
}

/** Groups rows by key with a counting sort. */
function rowsByKey(keyOfRow: Uint32Array, keys: number): [Uint32Array, Uint32Array] {
  const offsets = new Uint32Array(keys + 1);
  let known = 0;
  for (let row = 0; row < keyOfRow.length; row++) {
    const key = keyOfRow[row];
    if (key === UNKNOWN_ROW) continue;
    offsets[key + 1]++;
    known++;
  }
  for (let key = 0; key < keys; key++) offsets[key + 1] += offsets[key];
  const next = offsets.slice(0, keys);
  const rows = new Uint32Array(known);
  for (let row = 0; row < keyOfRow.length; row++) {
    const key = keyOfRow[row];
    if (key !== UNKNOWN_ROW) rows[next[key]++] = row;
  }
  return [offsets, rows];
}

/** Pairs of matching rows: probe[i] matches build[i]. The arrays are reused for the next pairs. */
export interface Matches {
  /** Rows of the probe batch, ascending. */
  readonly probe: Uint32Array;
  /**
   * Rows of the build side. A probe row without a match has the build side's number of rows here, an index
   * after the last row.
   */
  readonly build: Uint32Array;
  /** True if `probe` is a range of consecutive rows. */
  readonly isRange: boolean;
  /** True if any row has no match. */
  readonly hasMisses: boolean;
}

interface HashJoinOptions {
  /** Also return probe rows without a match. */
  readonly keepsProbe: boolean;
  /** Record the keys of the build side that have a match, for `heldRows`. */
  readonly notesMatches: boolean;
  /** Most pairs at once. */
  readonly limit: number;
}

/**
 * Finds the matches of probe rows on the build side. Probe rows keep their order, and the matches of each
 * have the order of the build side. A bounded number of pairs is made at a time, even if a row has many.
 */
class HashJoin {
  readonly #build: BuildSide;
  readonly #keepsProbe: boolean;
  /** 1 for the keys of the build side that occurred on the probe side. */
  readonly #matched: Uint8Array | undefined;
  readonly #probeRows: Uint32Array;
  readonly #buildRows: Uint32Array;
  /**
   * Position in the probe batch, so that pairs can be made in several pieces: the next row, and its next
   * match as an index into the build side's `rows`, or -1 before its first match.
   */
  #row = 0;
  #match = -1;
  #misses = 0;

  constructor(build: BuildSide, { keepsProbe, notesMatches, limit }: HashJoinOptions) {
    [this.#build, this.#keepsProbe] = [build, keepsProbe];
    this.#matched = notesMatches ? new Uint8Array(build.keys) : undefined;
    [this.#probeRows, this.#buildRows] = [new Uint32Array(limit), new Uint32Array(limit)];
  }

  /** The matches of a batch's rows. `keys`: numbers of their keys. */
  *matches(keys: Uint32Array): Generator<Matches> {
    [this.#row, this.#match] = [0, -1];
    if (this.#matched !== undefined) noteAll(keys, this.#matched);
    while (this.#row < keys.length) {
      const first = this.#row;
      this.#misses = 0;
      const count = this.#build.isUnique ? this.#fillUnique(keys) : this.#fill(keys);
      if (count === 0) continue;
      const isRange = this.#build.isUnique && count === this.#row - first;
      yield {
        probe: this.#probeRows.subarray(0, count),
        build: this.#buildRows.subarray(0, count),
        isRange,
        hasMisses: this.#misses > 0,
      };
    }
  }

  /** Records the keys of a batch's rows as matched, without making pairs. */
  note(keys: Uint32Array): void {
    if (this.#matched !== undefined) noteAll(keys, this.#matched);
  }

  /** Rows of the build side whose key occurred on the probe side (`hadMatch`), or all others; ascending. */
  heldRows(hadMatch: boolean): Uint32Array {
    const { keyOfRow, rowCount } = this.#build;
    const matched = this.#matched ?? new Uint8Array(this.#build.keys);
    const wanted = hadMatch ? 1 : 0;
    const rows = new Uint32Array(rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row++) {
      const key = keyOfRow[row];
      const had = key === UNKNOWN_ROW ? 0 : matched[key];
      if (had === wanted) rows[count++] = row;
    }
    return rows.subarray(0, count);
  }

  /** Fast path: each key has exactly one row. */
  #fillUnique(keys: Uint32Array): number {
    const { rows, rowCount } = this.#build;
    const [probe, build, keepsProbe] = [this.#probeRows, this.#buildRows, this.#keepsProbe];
    const end = Math.min(keys.length, this.#row + probe.length);
    let [count, misses] = [0, 0];
    for (let row = this.#row; row < end; row++) {
      const key = keys[row];
      if (key !== UNKNOWN_ROW) build[count] = rows[key];
      else if (keepsProbe) {
        build[count] = rowCount;
        misses++;
      } else continue;
      probe[count++] = row;
    }
    [this.#row, this.#misses] = [end, misses];
    return count;
  }

  #fill(keys: Uint32Array): number {
    const { offsets, rows, rowCount } = this.#build;
    const [probe, build, keepsProbe] = [this.#probeRows, this.#buildRows, this.#keepsProbe];
    const limit = probe.length;
    let [row, match, count, misses] = [this.#row, this.#match, 0, 0];
    while (row < keys.length && count < limit) {
      const key = keys[row];
      if (key === UNKNOWN_ROW) {
        if (keepsProbe) {
          probe[count] = row;
          build[count++] = rowCount;
          misses++;
        }
        row++;
        continue;
      }
      const end = offsets[key + 1];
      let at = match < 0 ? offsets[key] : match;
      const stop = Math.min(end, at + limit - count);
      for (; at < stop; at++) {
        probe[count] = row;
        build[count++] = rows[at];
      }
      match = at < end ? at : -1;
      if (match < 0) row++;
    }
    [this.#row, this.#match, this.#misses] = [row, match, misses];
    return count;
  }
}

function noteAll(keys: Uint32Array, matched: Uint8Array): void {
  for (let row = 0; row < keys.length; row++) if (keys[row] !== UNKNOWN_ROW) matched[keys[row]] = 1;
}

/** Most rows of a batch, and most bytes of its values unless one row has more. */
const MOST_ROWS = 1 << 16;
const MOST_BYTES = 4 << 20;

/**
 * The input from which a column is taken for a pair of rows. `coalesced`: the build side if it has a match,
 * else the probe side.
 */
type From = 'probe' | 'build' | 'coalesced';

interface Column {
  readonly type: DataType;
  readonly from: From;
  /** Name of the column on the probe side, if it has it; likewise `build`. */
  readonly probe: string | undefined;
  readonly build: string | undefined;
}

/** Makes the batches of a join's result from pairs of rows of a probe batch and the build side. */
class JoinedBatches {
  readonly #schema: Schema;
  readonly #columns: readonly Column[];
  readonly #held: BuildSide;

  constructor(schema: Schema, columns: readonly JoinColumn[], params: JoinParams, held: BuildSide) {
    [this.#schema, this.#held] = [schema, held];
    this.#columns = columns.map((column) => ({
      type: column.field.type,
      from: fromOf(column, params),
      probe: column[otherSide(params.build)],
      build: column[params.build],
    }));
  }

  /** Most rows of a batch, by the size of fixed-width values. */
  static limitOf(columns: readonly JoinColumn[]): number {
    const bytes = columns.reduce((sum, { field }) => sum + fixedBytes(field.type), 0);
    return Math.max(1, Math.min(MOST_ROWS, Math.floor(MOST_BYTES / Math.max(1, bytes))));
  }

  /** The batches of pairs of rows. */
  *ofMatches(batch: RecordBatch, matches: Matches): Generator<RecordBatch> {
    const { probe, build, isRange, hasMisses } = matches;
    const parts = this.#columns.map(({ type, from, probe: own, build: other }) => {
      if (from !== 'build') return { type, from, data: columnOf(batch, own as string), rows: probe, other };
      const { values, withNull } = this.#held.column(other as string);
      return { type, from, data: hasMisses ? withNull : values, rows: build, other };
    });
    const copied = parts.filter(({ from }) => !(isRange && from === 'probe'));
    for (const [start, end] of piecesOf(copied, probe.length)) {
      const children = parts.map(({ from, data, rows, other }) => {
        if (from === 'probe' && isRange) return data.slice(probe[start], end - start);
        const taken = takeData(data, rows.subarray(start, end));
        if (from === 'coalesced') this.#replace(taken, other as string, build.subarray(start, end));
        return taken;
      });
      yield batchOf(this.#schema, end - start, children);
    }
  }

  /** Batches of build-side rows, with nulls for the other side's columns. */
  *ofHeld(rows: Uint32Array, limit: number): Generator<RecordBatch> {
    for (let at = 0; at < rows.length; at += limit) {
      const some = rows.subarray(at, at + limit);
      const held = this.#columns.map(({ type, build }) => ({
        type,
        data: build === undefined ? undefined : this.#held.column(build).values,
        rows: some,
      }));
      for (const [start, end] of piecesOf(held, some.length)) {
        const children = held.map(({ type, data }) =>
          data === undefined ? nullData(type, end - start) : takeData(data, some.subarray(start, end)),
        );
        yield batchOf(this.#schema, end - start, children);
      }
    }
  }

  /**
   * Overwrites float keys taken from the probe side by the build side's equal values: -0 equals 0, but the
   * result must have the bits of the side that defines the key.
   */
  #replace(taken: Data, name: string, build: Uint32Array): void {
    const [values, held] = [
      taken.values as Float64Array,
      this.#held.column(name).values.values as Float64Array,
    ];
    for (let i = 0; i < build.length; i++) if (build[i] < this.#held.rowCount) values[i] = held[build[i]];
  }
}

/**
 * Chooses the input from which a column is read. A key could be read from either, since equal keys have equal
 * bits, and the probe side is faster: its rows are consecutive. Only equal floats may differ in bits (-0 and
 * 0), so a float key is read from the side that defines its value.
 */
function fromOf({ left, right, field }: JoinColumn, { kind, build }: JoinParams): From {
  const probe = otherSide(build);
  if (left === undefined || right === undefined)
    return (build === 'left') === (left !== undefined) ? 'build' : 'probe';
  const own = kind === 'right' ? 'right' : 'left';
  if (own === probe || !DataType.isFloat(field.type)) return 'probe';
  return keepsUnmatched(kind, probe) ? 'coalesced' : 'build';
}

interface Taken {
  readonly type: DataType;
  readonly data: Data | undefined;
  readonly rows: Uint32Array;
}

/** Splits pairs into ranges whose values fit into a batch. */
function* piecesOf(columns: readonly Taken[], length: number): Generator<readonly [number, number]> {
  const variable = columns.filter(({ type, data }) => data !== undefined && isVariable(type));
  const bytes = (start: number, end: number) =>
    variable.reduce((sum, { data, rows }) => sum + variableBytes(data as Data, rows.subarray(start, end)), 0);
  const left: [number, number][] = [[0, length]];
  for (let piece = left.pop(); piece !== undefined; piece = left.pop()) {
    const [start, end] = piece;
    if (variable.length === 0 || end - start <= 1 || bytes(start, end) <= MOST_BYTES) {
      yield piece;
      continue;
    }
    const middle = (start + end) >>> 1;
    left.push([middle, end], [start, middle]);
  }
}

/** Bytes of each value in arrays whose size depends only on the number of rows. */
function fixedBytes(type: DataType): number {
  if (DataType.isNull(type)) return 0;
  if (DataType.isDictionary(type)) return type.indices.bitWidth / 8;
  if (DataType.isInt(type) || DataType.isDecimal(type) || DataType.isTime(type)) return type.bitWidth / 8;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) return 16;
  if (DataType.isStruct(type)) return type.children.reduce((sum, field) => sum + fixedBytes(field.type), 0);
  if (DataType.isFixedSizeList(type)) return type.listSize * fixedBytes(type.children[0].type);
  if (DataType.isUtf8(type) || DataType.isBinary(type) || DataType.isList(type)) return 4;
  return 8;
}

/** True for types with values of variable size. */
function isVariable(type: DataType): boolean {
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type))
    return type.children.some((field) => isVariable(field.type));
  const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type);
  const isBytes = DataType.isBinary(type) || DataType.isLargeBinary(type);
  return isText || isBytes || DataType.isList(type) || DataType.isLargeList(type) || DataType.isMap(type);
}

/**
 * Bytes of text, binary and list values at some rows; list elements count with the mean size of their column.
 */
function variableBytes(data: Data, rows: Uint32Array): number {
  const { type, children } = data;
  if (DataType.isStruct(type)) return children.reduce((sum, child) => sum + variableBytes(child, rows), 0);
  if (!isVariable(type)) return 0;
  if (DataType.isFixedSizeList(type)) return rows.length * type.listSize * meanBytes(children[0]);
  const offsets = data.valueOffsets as Int32Array | Float64Array | BigInt64Array;
  let elements = 0;
  for (let i = 0; i < rows.length; i++) elements += Number(offsets[rows[i] + 1]) - Number(offsets[rows[i]]);
  return children.length === 0 ? elements : elements * meanBytes(children[0]);
}

function meanBytes(data: Data): number {
  return data.length === 0 ? 0 : data.byteLength / data.length;
}
