import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { SgdData } from './data.ts';

/**
 * Makes a block without ratings, whose row offsets give the number of ratings of some rows of a side. It has
 * `count` rows; rows beyond the given range count 0 ratings.
 */
export function countsBlock(
  data: SgdData,
  side: 'row' | 'column',
  { from, to }: RowRange,
  count: number,
): Partition {
  const offsets =
    side === 'row' ? offsetsOfRows(data, { from, to }) : data.columnOffsets.subarray(from, to + 1);
  // Offsets above 2^32 wrap around; their differences stay correct.
  const own = sharedArray(Int32Array, count + 1);
  for (let row = 0; row <= count; row++) own[row] = offsets[Math.min(row, offsets.length - 1)] - offsets[0];
  return {
    layout: 'rating-block',
    rows: count,
    columns: { offsets: own, indices: new Uint32Array(0), values: new Float32Array(0) },
  };
}

/** The offsets of some rows, which must all be in one part of the ratings. */
function offsetsOfRows({ ratings }: SgdData, { from, to }: RowRange): Int32Array | Float64Array {
  const part = ratings.parts.find((one) => one.from <= from && to <= one.from + one.rows);
  if (part === undefined) throw new Error(`no part of the ratings has the rows ${from} to ${to}`);
  return part.offsets.subarray(from - part.from, to - part.from + 1);
}
