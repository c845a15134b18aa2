import { makeData, RecordBatch, Struct, type TypeMap } from 'apache-arrow';
import { joinData } from '../../engine/stream/join-data.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { dataBytes } from '../parquet/row-group-bytes.ts';

/** The rows of one folder, in the order of the input. */
export interface RowsOfFolder {
  readonly folder: number;
  readonly rows: RecordBatch;
}

/**
 * Rows waiting to be written into folders, in the order of the input. Rows of one folder are collected into
 * one batch, even if rows of other folders were between them.
 */
export class FolderRows {
  /** Bytes of the waiting rows. */
  bytes = 0;
  #batches: RecordBatch[] = [];
  /** The folder of each row, one list a batch. */
  #folders: Uint32Array[] = [];

  add(batch: RecordBatch, folders: Uint32Array): void {
    if (batch.numRows === 0) return;
    this.#batches.push(batch);
    this.#folders.push(folders);
    this.bytes += dataBytes(batch.data);
  }

  /**
   * Removes rows from the waiting ones and yields them, the folders with the most rows first, until at most
   * `leave` bytes wait.
   */
  *take(leave: number): Generator<RowsOfFolder> {
    if (this.#batches.length === 0) return;
    const all = joinedBatches(this.#batches);
    const folderOf = joined(this.#folders, all.numRows);
    const left = Math.floor((all.numRows * leave) / Math.max(1, this.bytes));
    [this.#batches, this.#folders, this.bytes] = [[], [], 0];
    const { order, starts } = sorted(folderOf);
    const taken = largest(starts, all.numRows - left);
    const kept = others(folderOf, taken, starts.length - 1);
    if (kept.length > 0) this.add(rowsAt(all, kept), valuesAt(folderOf, kept));
    for (const folder of taken)
      yield { folder, rows: rowsAt(all, order.subarray(starts[folder], starts[folder + 1])) };
  }
}

function joined(lists: readonly Uint32Array[], length: number): Uint32Array {
  const all = new Uint32Array(length);
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all;
}

/** Groups rows by folder; the rows of a folder keep their order. Rows of folder f begin at `starts[f]`. */
function sorted(folderOf: Uint32Array): { readonly order: Uint32Array; readonly starts: Uint32Array } {
  let most = 0;
  for (let row = 0; row < folderOf.length; row++) if (folderOf[row] > most) most = folderOf[row];
  const starts = new Uint32Array(most + 2);
  for (let row = 0; row < folderOf.length; row++) starts[folderOf[row] + 1]++;
  for (let folder = 0; folder <= most; folder++) starts[folder + 1] += starts[folder];
  const next = starts.slice();
  const order = new Uint32Array(folderOf.length);
  for (let row = 0; row < folderOf.length; row++) order[next[folderOf[row]]++] = row;
  return { order, starts };
}

/** The rows of all folders that are not in `taken`. */
function others(folderOf: Uint32Array, taken: readonly number[], folders: number): Uint32Array {
  const isTaken = new Uint8Array(folders);
  for (const folder of taken) isTaken[folder] = 1;
  const rows = new Uint32Array(folderOf.length);
  let count = 0;
  for (let row = 0; row < rows.length; row++) {
    rows[count] = row;
    count += 1 - isTaken[folderOf[row]];
  }
  return rows.subarray(0, count);
}

function valuesAt(values: Uint32Array, positions: Uint32Array): Uint32Array {
  const taken = new Uint32Array(positions.length);
  for (let i = 0; i < taken.length; i++) taken[i] = values[positions[i]];
  return taken;
}

/**
 * The folders with the most rows that together have at least `rows` rows: as few as possible, largest first,
 * but at least one.
 */
function largest(starts: Uint32Array, rows: number): number[] {
  const sizeOf = (folder: number) => starts[folder + 1] - starts[folder];
  const bySize = [...starts.subarray(1).keys()]
    .filter((folder) => sizeOf(folder) > 0)
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  let sum = 0;
  const end = bySize.findIndex((folder) => (sum += sizeOf(folder)) >= rows);
  return end < 0 ? bySize : bySize.slice(0, end + 1);
}

/** Concatenates batches of the same columns, without their origins. */
function joinedBatches(batches: readonly RecordBatch[]): RecordBatch {
  const [{ schema }] = batches;
  const children = schema.fields.map(({ type }, i) =>
    joinData(
      type,
      batches.map(({ data }) => data.children[i]),
    ),
  );
  const length = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length, nullCount: 0, children }));
}

/** Gathers a batch's rows at the given positions, without their origins. */
function rowsAt({ schema, data }: RecordBatch, positions: Uint32Array): RecordBatch {
  const children = data.children.map((column) => takeData(column, positions));
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length: positions.length, nullCount: 0, children }));
}
