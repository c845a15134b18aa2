import { RecordBatch, RecordBatchReader, type Schema } from 'apache-arrow';
import { hashRows } from '../../engine/keys/row-hashes.ts';
import { rangeParts } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import { takeRows } from '../dataflow/take-rows.ts';
import type { ExchangeParams } from './exchange.ts';

/** Returns the part number of each row of a batch. Batches must come in the order of the task's rows. */
export type PartOfRows = (batch: RecordBatch) => Uint16Array;

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
  const part = new Uint16Array(hashes.length);
  for (let row = 0; row < hashes.length; row++) part[row] = Math.imul(hashes[row] >>> 16, parts) >>> 16;
  return part;
}

/** The rows of each nonempty part, in order. */
export function* divided(
  batch: RecordBatch,
  partOf: Uint16Array,
  parts: number,
): Generator<{ readonly part: number; readonly rows: RecordBatch }> {
  const ends = new Uint32Array(parts);
  for (let row = 0; row < partOf.length; row++) ends[partOf[row]]++;
  for (let part = 0, start = 0; part < parts; part++) {
    const count = ends[part];
    ends[part] = start;
    start += count;
  }
  const positions = new Uint32Array(partOf.length);
  for (let row = 0; row < partOf.length; row++) positions[ends[partOf[row]]++] = row;
  for (let part = 0, start = 0; part < parts; part++) {
    const end = ends[part];
    if (end > start) yield { part, rows: takeRows(batch, positions.subarray(start, end)) };
    start = end;
  }
}
