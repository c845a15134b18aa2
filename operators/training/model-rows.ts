import { concatenate } from '../../engine/numbers/concatenate.ts';
import { sharedArray } from '../../engine/partition.ts';
import { readRows, type RowParts, type RowPart, storedParts } from '../../engine/row-parts.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';

/** X and Θ of a model after training; see modelRows for the two features that biases add. */
export interface ModelRows {
  readonly users: RowParts;
  readonly items: RowParts;
}

/** The same as matrices in memory. */
export interface ModelFactors {
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

export function factorsOfRows({ users, items }: ModelRows): ModelFactors {
  return {
    userFactors: readRows(users, 0, users.rows, true),
    itemFactors: readRows(items, 0, items.rows, true),
  };
}

/** Column `values` of each part of a returned data set, in part order. */
export function partsOf(results: StepResults, name: string): Float32Array[] {
  return results.partitions(name).map(({ columns }) => columns.values as Float32Array);
}

/** The parts of a returned matrix, in memory or in files. `own`: one number per row, by part. */
export function rowPartsOf(results: StepResults, name: string, own?: readonly Float32Array[]): RowPart[] {
  const partitions = results.partitions(name);
  const stored = partitions.flatMap(({ rows, stored: column }) =>
    column === undefined ? [] : [{ rows, read: () => column.read() as Float32Array }],
  );
  if (stored.length > 0) return storedParts(stored, own);
  return partsOf(results, name).map((values, part) => ({ values, ...(own && { own: own[part] }) }));
}

/** One array with the contents of all, in shared memory. A single array is returned without a copy. */
export function oneArray(parts: readonly Float32Array[]): Float32Array {
  return concatenate(Float32Array, parts, (length) => sharedArray(Float32Array, length));
}
