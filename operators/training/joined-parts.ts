import { sharedArray } from '../../engine/partition.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';

/** The column `values` of all parts of a name that were handed out, in part order. `lengths`: the numbers of each part that are in use. */
export function joinedParts(results: StepResults, name: string, lengths?: readonly number[]): Float32Array {
  const parts = results.partitions(name).map(({ columns }, part) => (columns.values as Float32Array).subarray(0, lengths?.[part]));
  if (parts.length === 1) return parts[0];
  const values = sharedArray(Float32Array, parts.reduce((sum, part) => sum + part.length, 0));
  let filled = 0;
  for (const part of parts) {
    values.set(part, filled);
    filled += part.length;
  }
  return values;
}
