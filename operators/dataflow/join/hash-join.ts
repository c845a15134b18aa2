import { type Data, DataType, type Field, type RecordBatch, type Schema } from 'apache-arrow';
import { hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { RowNumbers, UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import { concatenate } from '../../../engine/numbers/concatenate.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { takeData } from '../../../engine/stream/take-data.ts';

/**
 * Assigns numbers to the keys of rows. A row with a null key gets none, since a null equals no other value.
 */
export class KeyNumbers {
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

export function columnOf({ schema, data }: RecordBatch, name: string): Data {
  return data.children[schema.fields.findIndex((field) => field.name === name)];
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

  private constructor(numbers: KeyNumbers, keyOfRow: Uint32Array, columns: ReadonlyMap<string, HeldColumn>) {
    [this.#numbers, this.#columns, this.keyOfRow] = [numbers, columns, keyOfRow];
    [this.offsets, this.rows] = rowsByKey(keyOfRow, numbers.size);
  }

  /** Reads all rows of a stream. `names`: the columns to keep. */
  static async read(
    input: BatchStream,
    keys: readonly string[],
    names: readonly string[],
  ): Promise<BuildSide> {
    const { schema } = input;
    const parts = new Map([...keys, ...names].map((name) => [name, [] as Data[]]));
    for await (const batch of input)
      if (batch.numRows > 0) for (const [name, own] of parts) own.push(columnOf(batch, name));
    const numbers = new KeyNumbers(schema, keys);
    const keyOfRow = keyNumbersOf(
      numbers,
      keys.map((name) => ({ type: fieldOf(schema, name).type, parts: parts.get(name) as Data[] })),
    );
    const columns = new Map<string, HeldColumn>();
    for (const name of names) {
      const own = parts.get(name) as Data[];
      columns.set(name, heldColumn(joinData(fieldOf(schema, name).type, own, 1)));
      // Frees the parts, so that only one column at a time is in memory twice.
      own.length = 0;
    }
    return new BuildSide(numbers, keyOfRow, columns);
  }

  get rowCount(): number {
    return this.keyOfRow.length;
  }

  /** Number of distinct keys. */
  get keys(): number {
    return this.#numbers.size;
  }

  /** True if each key has exactly one row. */
  get isUnique(): boolean {
    return this.rows.length === this.keys;
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
export class HashJoin {
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
