import { concatenate } from '../../../engine/numbers/concatenate.ts';
import { type Data, DataType, type RecordBatch } from 'apache-arrow';
import { UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { columnOf, fieldOf, KeyNumbers } from './key-numbers.ts';

/**
 * One column of the build side, all rows together; and the same column with a null appended, which is taken
 * for probe rows without a match.
 */
export interface HeldColumn {
  readonly values: Data;
  readonly withNull: Data;
}

/**
 * The side of a join that is held in memory, indexed by key. Distinct keys are numbered 0, 1, 2, ... The rows
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
    [this.offsets, this.rows] = grouped(keyOfRow, numbers.size);
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
    const keyOfRow = numbered(
      numbers,
      keys.map((name) => ({ type: fieldOf(schema, name).type, parts: parts.get(name) as Data[] })),
    );
    const columns = new Map<string, HeldColumn>();
    for (const name of names) {
      const own = parts.get(name) as Data[];
      columns.set(name, held(joinData(fieldOf(schema, name).type, own, 1)));
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
    if (found === undefined) throw new Error(`the held side of the join has no column "${name}"`);
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
 * Numbers the keys of all rows. A single 32-bit key column is numbered at once: the range of all keys shows
 * if a table indexed by key can be used.
 */
function numbered(numbers: KeyNumbers, keys: readonly KeyParts[]): Uint32Array {
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

function held(withNull: Data): HeldColumn {
  return { values: withNull.slice(0, withNull.length - 1), withNull };
}

/** Groups rows by key with a counting sort. */
function grouped(keyOfRow: Uint32Array, keys: number): [Uint32Array, Uint32Array] {
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
