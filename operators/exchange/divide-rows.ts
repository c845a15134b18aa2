import { type Data, RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { hashRows, wordsOfType } from '../../engine/keys/row-words.ts';
import { rangeParts } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { PackedRows } from '../../engine/stream/packed-rows.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { batchOf } from '../dataflow/row-operator.ts';
import type { ExchangeParams } from './exchange.ts';

/**
 * Returns the part number of each row of a batch, until it is called again. Batches must come in the order of
 * the task's rows.
 */
type PartOfRows = (batch: RecordBatch) => Uint16Array;

/**
 * Returns the function that assigns the rows of one task to parts. `bounds`: for an exchange by ranges, the
 * bounds of the ranges as an Arrow stream.
 */
export function partOfRows(
  { by, parts, task }: ExchangeParams,
  schema: Schema,
  bounds?: Uint8Array,
): PartOfRows {
  if (by.kind === 'hash') {
    const at = by.columns.map((name) => schema.fields.findIndex((field) => field.name === name));
    return (batch) => byHash(batch, at, parts);
  }
  if (by.kind === 'evenly') {
    let next = task % parts;
    return ({ numRows }) => {
      const part = new Uint16Array(numRows);
      for (let row = 0; row < numRows; row++) {
        part[row] = next;
        next = next + 1 === parts ? 0 : next + 1;
      }
      return part;
    };
  }
  return byRange(by.keys, task, bounds);
}

function byRange(keys: readonly SortKey[], task: number, bytes: Uint8Array | undefined): PartOfRows {
  const bounds = bytes && RecordBatchReader.from(bytes).next().value;
  if (!(bounds instanceof RecordBatch)) throw new Error('an exchange by ranges needs their bounds');
  let firstRow = 0;
  return (batch) => {
    const part = rangeParts(batch, keys, bounds, { task, firstRow });
    firstRow += batch.numRows;
    return part;
  };
}

/**
 * Each part has an equal range of the upper 16 bits of the hash. Hash tables of the keys of a part use the
 * lower bits, which still differ within a part.
 */
function byHash(batch: RecordBatch, columns: readonly number[], parts: number): Uint16Array {
  const hashes = hashRows(
    columns.map((column) => batch.data.children[column]),
    batch.numRows,
  );
  return partsOfHashes(hashes, parts, batch.numRows);
}

/** Memory of this thread for one batch. */
let partRoom = new Uint16Array(0);
let positionRoom = new Uint32Array(0);

function partsOfHashes(hashes: Uint32Array, parts: number, rows: number): Uint16Array {
  if (partRoom.length < rows) partRoom = new Uint16Array(rows);
  const part = partRoom.subarray(0, rows);
  for (let row = 0; row < rows; row++) part[row] = Math.imul(hashes[row] >>> 16, parts) >>> 16;
  return part;
}

/** The rows of a batch that belong to one part. */
interface PartPiece {
  readonly part: number;
  readonly rows: number;
  readonly columns: readonly Data[];
}

/**
 * The rows of each nonempty part, in order; read them before those of another batch. Columns of fixed width are copied once, in the order of parts, and
 * the pieces are views of the copy: a copy for each part would allocate thousands of small arrays.
 */
export function* rowsOfParts(
  { data: { children } }: RecordBatch,
  partOf: Uint16Array,
  parts: number,
): Generator<PartPiece> {
  const ends = new Uint32Array(parts);
  for (let row = 0; row < partOf.length; row++) ends[partOf[row]]++;
  for (let part = 0, start = 0; part < parts; part++) {
    const count = ends[part];
    ends[part] = start;
    start += count;
  }
  if (positionRoom.length < partOf.length) positionRoom = new Uint32Array(partOf.length);
  const positions = positionRoom.subarray(0, partOf.length);
  for (let row = 0; row < partOf.length; row++) positions[ends[partOf[row]]++] = row;
  const ordered = children.map((data) =>
    wordsOfType(data.type) > 0 ? takeData(data, positions) : undefined,
  );
  for (let part = 0, start = 0; part < parts; part++) {
    const end = ends[part];
    const rows = end - start;
    const pieceOf = (data: Data, column: number) =>
      ordered[column]?.slice(start, rows) ?? takeData(data, positions.subarray(start, end));
    if (rows > 0) yield { part, rows, columns: children.map(pieceOf) };
    start = end;
  }
}

/**
 * Collects the rows of one part of an exchange. Each input batch contributes a small piece to each part: pieces
 * of numbers and texts are packed, others are written as an Arrow stream.
 */
export class PartRows {
  readonly #schema: Schema;
  readonly #rows: PackedRows | RowStream;

  constructor(schema: Schema, packs: boolean) {
    this.#schema = schema;
    this.#rows = packs ? new PackedRows(schema) : new RowStream(schema, false);
  }

  add({ rows, columns }: Omit<PartPiece, 'part'>): void {
    if (this.#rows instanceof PackedRows) this.#rows.add(rows, columns);
    else this.#rows.add(batchOf(this.#schema, rows, [...columns]));
  }

  /** Ends the rows. Returns the number of bytes. */
  finish(): number {
    return this.#rows.finish();
  }

  get rows(): number {
    return this.#rows.rows;
  }

  /** Bytes of finished rows. */
  get length(): number {
    return this.#rows.length;
  }

  takeInto(all: Uint8Array, at: number): void {
    this.#rows.takeInto(all, at);
  }
}
