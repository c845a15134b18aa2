import type { Data, RecordBatch } from 'apache-arrow';
import { UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { columnOf, fieldOf, KeyNumbers } from './key-numbers.ts';

/** A column of all rows of the held side, and the same with a null at the end. */
export interface HeldColumn {
  readonly values: Data;
  readonly withNull: Data;
}

/**
 * All rows of one side of a join by their keys. Keys have numbers 0, 1, 2, ...; the rows with key k, ascending, are
 * rows[offsets[k]] to rows[offsets[k + 1] - 1]. Rows with a null key are in no such list.
 *
 *     keys      b a b null a      numbers  b: 0, a: 1
 *     offsets   0 2 4             rows     0 2 1 4
 */
export class BuildSide {
  readonly rowCount: number;
  /** The number of each row's key; UNKNOWN_ROW for a null. */
  readonly keyOfRow: Uint32Array;
  readonly offsets: Uint32Array;
  readonly rows: Uint32Array;
  readonly #numbers: KeyNumbers;
  readonly #columns: ReadonlyMap<string, HeldColumn>;

  private constructor(
    numbers: KeyNumbers,
    codes: readonly Uint32Array[],
    columns: ReadonlyMap<string, HeldColumn>,
  ) {
    [this.#numbers, this.#columns] = [numbers, columns];
    this.rowCount = codes.reduce((sum, { length }) => sum + length, 0);
    this.keyOfRow = concatenated(codes, this.rowCount);
    [this.offsets, this.rows] = grouped(this.keyOfRow, numbers.size);
  }

  /** Reads all rows of a stream; `names` are the columns that are held. */
  static async read(
    input: BatchStream,
    keys: readonly string[],
    names: Iterable<string>,
  ): Promise<BuildSide> {
    const numbers = new KeyNumbers(input.schema, keys);
    const parts = new Map(Array.from(names, (name) => [name, [] as Data[]]));
    const codes: Uint32Array[] = [];
    for await (const batch of input) {
      if (batch.numRows === 0) continue;
      codes.push(numbers.add(batch, keys));
      for (const [name, own] of parts) own.push(columnOf(batch, name));
    }
    const columns = new Map<string, HeldColumn>();
    for (const [name, own] of parts) {
      columns.set(name, held(joinData(fieldOf(input.schema, name).type, own, 1)));
      // Only one column at a time is in memory twice.
      own.length = 0;
    }
    return new BuildSide(numbers, codes, columns);
  }

  /** The number of distinct keys. */
  get keys(): number {
    return this.#numbers.size;
  }

  /** True where each key has one row. */
  get isUnique(): boolean {
    return this.rows.length === this.keys;
  }

  column(name: string): HeldColumn {
    const found = this.#columns.get(name);
    if (found === undefined) throw new Error(`the held side of the join has no column "${name}"`);
    return found;
  }

  /** The number of each row's key among the keys that are held, else UNKNOWN_ROW. */
  find(batch: RecordBatch, keys: readonly string[]): Uint32Array {
    return this.#numbers.find(batch, keys);
  }
}

function held(withNull: Data): HeldColumn {
  return { values: withNull.slice(0, withNull.length - 1), withNull };
}

function concatenated(parts: readonly Uint32Array[], length: number): Uint32Array {
  if (parts.length === 1) return parts[0];
  const all = new Uint32Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Rows by key: a counting sort. */
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
