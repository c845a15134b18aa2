import { DataError } from '../../../engine/errors.ts';
import { keyCount, keyText } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef, partitionRef, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { contracts, type DuplicatePolicy, type TaskOf } from '../../tasks/tasks.ts';
import type { IndexedRatings } from '../ids/index-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../rating-block.ts';
import { balancedRanges, taskCount } from '../row-ranges.ts';
import { sortChunks, type SortedRows } from './sort-into-rows.ts';

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
  const ref = (part: string) => partitionRef(`${name}/${part}`);
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

const STAGE = 'combine-duplicates';

/**
 * The number of ratings that repeat the (user, item) pair of another, and the row and column of the first
 * such pair.
 */
export interface RepeatedPairs {
  readonly extra: number;
  readonly row: number;
  readonly column: number;
}

/** A block after repeated pairs were combined by the policy, and the ratings that this removed. */
interface CombinedRatings {
  readonly block: RatingBlock;
  readonly repeated: RepeatedPairs;
  /** Columns of the removed ratings. */
  readonly removed: readonly Uint32Array[];
}

/** Throws DataError if ratings repeat a pair. */
export function requireOnce(
  { extra, row, column }: RepeatedPairs,
  ids: Pick<IndexedRatings, 'users' | 'items' | 'swapped'>,
): void {
  if (extra === 0) return;
  const [first, second] = [keyText(ids.users, row), keyText(ids.items, column)];
  const pair = ids.swapped ? `user ${second}, item ${first}` : `user ${first}, item ${second}`;
  throw new DataError(
    `${extra.toLocaleString('en')} ratings repeat an earlier (user, item) pair; the first pair: ${pair}`,
    { phase: 'read', advice: "Choose a policy for them, such as onDuplicates: 'keep', or last, mean or sum" },
  );
}

/**
 * Combines repeated (user, item) pairs of sorted ratings by the policy. Returns the block unchanged if there
 * are none; for `keep`, since sort-bands has already ordered them; and for `error`, since the caller counts
 * them in all parts and then throws. `rowData`: ratings and timestamps of all rows, for the policy `last`,
 * whose block contains row numbers instead of ratings. `firstRow`: position of the block's first row among
 * all.
 */
async function combineDuplicates(
  { block, repeated: { extra, row, column } }: SortedRows,
  policy: DuplicatePolicy,
  firstRow: number,
  rowData: PartitionRef | undefined,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<CombinedRatings> {
  const repeated: RepeatedPairs = { extra, row: firstRow + row, column };
  if (policy === 'keep' || policy === 'error' || (extra === 0 && rowData === undefined))
    return { block, repeated, removed: [] };

  const ranges = balancedRanges(block.offsets, taskCount(block.ratings));
  const { place } = hostDevice(ctx.executor).info;
  const refs = ranges.map((_, partition) =>
    ['lengths', 'repeated'].map((part) => partitionRef(`${ref.name}/${part}`, partition)),
  );
  const finding = new StepList(contracts);
  ranges.forEach((range, i) => {
    const [lengths, removed] = refs[i];
    const task: TaskOf<'find-duplicates'> = {
      kernel: 'find-duplicates',
      inputs: { block: block.ref },
      outputs: { lengths, repeated: removed },
      params: { ...range },
    };
    const found = finding.task(STAGE, place, task);
    for (const part of refs[i]) finding.handOut(STAGE, part, place, found);
  });
  finding.free(STAGE, place, refs.flat());
  const { handed } = await runSteps(finding.steps, ctx);
  const lengths = new Int32Array(block.rows);
  ranges.forEach(({ from }, i) => lengths.set(handed[2 * i].columns.lengths as Int32Array, from));
  const removed = ranges.map((_, i) => handed[2 * i + 1].columns.columns as Uint32Array);

  const combined = emptyBlock(lengths);
  const combining = new StepList(contracts);
  const inputs = { block: block.ref, ...(rowData ? { rowData } : {}) };
  addSliced(
    combining,
    STAGE,
    place,
    { kernel: 'combine-duplicates', inputs, outputs: { combined: ref }, params: { policy } },
    ranges,
  );
  combining.free(STAGE, place, Object.values(inputs));
  await runSteps(combining.steps, ctx, { given: [[ref, combined, place]] });
  return { block: blockOf(ref, combined), repeated, removed };
}
