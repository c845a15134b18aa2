import { type Data, DataType, type Field, type RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import {
  printKeys,
  compareRows,
  type KeyWords,
  type SortKey,
  SortKeys,
  wordAt,
} from '../../engine/sorting/sort-keys.ts';
import { sortedBatches } from '../../engine/sorting/sorted-batches.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnOf, RowOperator, takeRows } from './row-operator.ts';
import { requireKeys, requireOrder } from './sort-rows.ts';

/** Keeps the first rows, and then stops reading. */
export class Limit extends RowOperator {
  readonly name = 'limit';
  readonly passesNeeds = true;
  readonly rows: number;

  constructor(rows: number) {
    super();
    this.rows = rows;
  }

  describe(): JsonObject {
    return { rows: this.rows };
  }

  protected async *batches(input: BatchStream) {
    let left = this.rows;
    if (left === 0) return;
    for await (const batch of input) {
      if (batch.numRows < left) {
        left -= batch.numRows;
        yield batch;
        continue;
      }
      yield batch.numRows === left
        ? batch
        : takeRows(
            batch,
            Uint32Array.from({ length: left }, (_, i) => i),
          );
      return;
    }
  }
}

/**
 * At least this number of rows beyond the requested ones are collected before the candidates are sorted and
 * cut again.
 */
const FEWEST_CANDIDATES = 4096;

/** Rows whose keys are computed at once in a search for one that may belong to the result. */
const SEARCHED_ROWS = 1 << 13;

/** Scope of the first rows: of each split (they are merged later), or of all rows. */
export type TopRowsOf = 'split' | 'all';

/**
 * The first rows in the order of some keys; rows with equal keys keep the input's order. Its memory is
 * bounded: one batch, and twice the requested rows (but at least FEWEST_CANDIDATES more than requested).
 */
export class TopRows extends RowOperator {
  readonly name = 'top-rows';
  readonly keepsBatches = true;
  readonly keys: readonly SortKey[];
  readonly rows: number;
  readonly of: TopRowsOf;

  constructor(keys: readonly SortKey[], rows: number, of: TopRowsOf = 'all') {
    super([keys, rows, of]);
    requireKeys(keys);
    [this.keys, this.rows, this.of] = [keys, rows, of];
  }

  get takesAllRows(): boolean {
    return this.of === 'all';
  }

  describe(): JsonObject {
    return { rows: this.rows, by: printKeys(this.keys), ...(this.of === 'split' && { of: 'each split' }) };
  }

  override outputSchema(input: Schema): Schema {
    requireOrder(input, this.keys);
    return input;
  }

  protected override readColumns(): readonly string[] {
    return this.keys.map(({ column }) => column);
  }

  protected async *batches(input: BatchStream) {
    if (this.rows === 0) return;
    const candidates = new Candidates(input.schema, this.keys, this.rows);
    const [{ column }] = this.keys;
    input.narrow?.({ column, mayHave: (values) => candidates.mayHave(values) });
    for await (const batch of input) if (batch.numRows > 0) candidates.add(batch);
    yield* candidates.sorted();
  }
}

/**
 * Rows that may still belong to the first ones; cut to the requested number whenever they have grown too
 * many.
 */
class Candidates {
  readonly #schema: Schema;
  readonly #keys: readonly SortKey[];
  readonly #rows: number;
  readonly #all: SortKeys;
  /** The column of the first key, and its sort keys. */
  readonly #field: Field;
  readonly #first: SortKeys;
  #batches: RecordBatch[] = [];
  #count = 0;
  /**
   * Sort keys of the last row after the latest cut: rows that are not before it cannot belong to the result.
   * Undefined before the first cut.
   */
  #last: KeyWords | undefined;

  constructor(schema: Schema, keys: readonly SortKey[], rows: number) {
    [this.#schema, this.#keys, this.#rows] = [schema, keys, rows];
    this.#all = new SortKeys(schema, keys);
    const [first] = keys;
    this.#field = schema.fields.find(({ name }) => name === first.column) as Field;
    this.#first = new SortKeys(new Schema([this.#field]), [first]);
  }

  /**
   * False if no row with these values of the first key can belong to the result. True for keys of more than 32
   * bits that are not integers: their words take longer to compute than the other columns to read.
   */
  mayHave(values: Data): boolean {
    if (this.#last === undefined || String(values.type) !== String(this.#field.type)) return true;
    const { words } = this.#first.ofChunks([[values.slice(0, 1)]], 1);
    if (words.length > 2 && !isLongs(values)) return true;
    for (let at = 0; at < values.length; at += SEARCHED_ROWS) {
      const some = values.slice(at, Math.min(SEARCHED_ROWS, values.length - at));
      if (this.#near(some, this.#last).rows.length > 0) return true;
    }
    return false;
  }

  add(batch: RecordBatch): void {
    const most = Math.max(2 * this.#rows, this.#rows + FEWEST_CANDIDATES);
    if (this.#last === undefined && this.#count + batch.numRows > most) {
      // Few rows are sorted for a first bound, and the others are compared with it.
      const head = most - this.#count;
      this.add(batch.slice(0, head));
      this.add(batch.slice(head));
      return;
    }
    const candidates = this.#last === undefined ? batch : this.#before(batch, this.#last);
    if (candidates === undefined) return;
    this.#batches.push(candidates);
    this.#count += candidates.numRows;
    if (this.#count >= most) this.#cut();
  }

  sorted(): Generator<RecordBatch> {
    return sortedBatches(this.#schema, this.#batches, this.#keys, this.#rows);
  }

  #cut(): void {
    this.#batches = [...this.sorted()];
    this.#count = this.#rows;
    const last = this.#batches[this.#batches.length - 1];
    this.#last = this.#all.of(last.slice(last.numRows - 1));
  }

  /**
   * Rows by the first key alone. `isExact`: it is the only key, and the words compared have all of it; then the rows are
   * those before `last`. Otherwise they also have its value.
   */
  #near(values: Data, last: KeyWords): { readonly rows: Uint32Array; readonly isExact: boolean } {
    const isOnly = this.#keys.length === 1;
    if (isLongs(values)) {
      const first = this.#first.ofChunks([[values.slice(0, 1)]], 1);
      if (wordAt(first.words[0], 0) === wordAt(last.words[0], 0)) {
        const { descending = false } = this.#keys[0];
        return { rows: longsUpTo(values, descending, last, isOnly), isExact: isOnly };
      }
    }
    const keys = this.#first.ofChunks([[values]], values.length);
    const isExact = isOnly && keys.words.length <= 3 && keys.texts.length === 0;
    return { rows: rowsUpTo(keys, last, isExact), isExact };
  }

  /**
   * The rows of a batch that sort before `last`. Compares the first key of all rows, then all keys of the
   * rows that remain.
   */
  #before(batch: RecordBatch, last: KeyWords): RecordBatch | undefined {
    const { rows, isExact } = this.#near(columnOf(batch, this.#field.name), last);
    if (rows.length === 0) return undefined;
    const taken = rows.length === batch.numRows ? batch : takeRows(batch, rows);
    if (isExact) return taken;
    const keys = this.#all.of(taken);
    const before: number[] = [];
    for (let row = 0; row < taken.numRows; row++) if (compareRows(keys, row, last, 0) < 0) before.push(row);
    if (before.length === 0) return undefined;
    return before.length === taken.numRows ? taken : takeRows(taken, Uint32Array.from(before));
  }
}

/**
 * Rows whose first sort key is not greater than the given row's, or with `isLess` smaller, by the first three
 * words of the key: a flag that orders nulls, and the upper and the lower word of the value.
 */
function rowsUpTo({ words, rows }: KeyWords, last: KeyWords, isLess: boolean): Uint32Array {
  const [flags, high = 0, low = 0] = words;
  const lastOf = (word: number) => (word < words.length ? wordAt(last.words[word], 0) : 0);
  const [flag, upper, lower] = [lastOf(0), lastOf(1), lastOf(2) - (isLess ? 1 : 0)];
  const found = new Uint32Array(rows);
  let count = 0;
  if (flags === flag && typeof high !== 'number' && low === 0) {
    const most = lower >= 0 ? upper : upper - 1;
    for (let row = 0; row < rows; row++) if (high[row] <= most) found[count++] = row;
    return found.subarray(0, count);
  }
  for (let row = 0; row < rows; row++) {
    const [own, value] = [wordAt(flags, row), wordAt(high, row)];
    const isUpTo = value < upper || (value === upper && wordAt(low, row) <= lower);
    if (own < flag || (own === flag && isUpTo)) found[count++] = row;
  }
  return found.subarray(0, count);
}

/** True for 64-bit integers, dates and times without nulls. */
function isLongs({ type, values, nullCount, dictionary }: Data): boolean {
  const isLong = values instanceof BigInt64Array || values instanceof BigUint64Array;
  return isLong && !DataType.isDecimal(type) && nullCount === 0 && dictionary === undefined;
}

/** rowsUpTo of 64-bit integers without nulls: compares the values where they lie, without writing their words. */
function longsUpTo({ type, values, length }: Data, descending: boolean, last: KeyWords, isLess: boolean) {
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * length);
  const turned = descending ? -1 : 0;
  const signed = DataType.isInt(type) && !type.isSigned ? turned : turned ^ 0x80000000;
  const upper = wordAt(last.words[1], 0);
  const lower = wordAt(last.words[2], 0) - (isLess ? 1 : 0);
  const found = new Uint32Array(length);
  let count = 0;
  for (let row = 0; row < length; row++) {
    const high = (halves[2 * row + 1] ^ signed) >>> 0;
    if (high > upper || (high === upper && (halves[2 * row] ^ turned) >>> 0 > lower)) continue;
    found[count++] = row;
  }
  return found.subarray(0, count);
}
