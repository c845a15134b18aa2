import { hostDevice } from '../../../engine/run/devices.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import type { DuplicatePolicy } from '../../tasks/tasks.ts';
import { combineDuplicates, type CombinedRatings } from './combine-duplicates.ts';
import type { IndexedRatings } from '../ids/index-ids.ts';
import { sortChunks } from './sort-chunks.ts';

interface Rows {
  /**
   * Side whose codes in the chunks become rows. If users and items are swapped, `users` means the codes of
   * items.
   */
  readonly by: 'users' | 'items';
  /** Position of the first row among all. The chunks and `userCounts` number the rows from 0. */
  readonly firstRow: number;
}

/** Sorts the ratings of all users, or of some, by user. Frees the chunks. */
export async function sortRows(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  { by, firstRow }: Rows,
  ctx: ExecutionContext,
): Promise<CombinedRatings> {
  const name = dataSetName('blocks');
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const rowData =
    duplicates === 'last' ? await roomForRowData(indexed.rows, ref('row-data'), ctx) : undefined;
  const shape = {
    lengths: indexed.userCounts,
    columns: keyCount(indexed.items),
    order: rowData ? 'by-column' : 'by-value',
    numbered: rowData !== undefined,
  } as const;
  const sorted = await sortChunks(indexed.chunks, by, shape, rowData, ref('sorted'), ctx);
  return combineDuplicates(sorted, duplicates, firstRow, rowData, ref('by-user'), ctx);
}

/**
 * Allocates the ratings and timestamps of all rows, which the policy `last` needs to find the latest rating;
 * the copy tasks fill them.
 */
async function roomForRowData(rows: number, ref: PartitionRef, ctx: ExecutionContext): Promise<PartitionRef> {
  const columns = { ratings: sharedArray(Float32Array, rows), timestamps: sharedArray(Float64Array, rows) };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, { layout: 'row-data', rows, columns }]]);
  return ref;
}

/** Number of ratings of each column, minus the ratings that a policy for duplicates removed. */
export function lengthsWithout(counts: Int32Array, removed: readonly Uint32Array[]): Int32Array {
  const lengths = counts.slice();
  for (const columns of removed) for (const column of columns) lengths[column]--;
  return lengths;
}
