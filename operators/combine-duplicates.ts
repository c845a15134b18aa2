import { DataError } from '../engine/errors.ts';
import type { Device } from '../engine/executor.ts';
import { keyText } from '../engine/keys/key-column.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import type { PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { IndexedRatings } from './index-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from './rating-block.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';
import type { CombineDuplicatesTask, DuplicatePolicy, FindDuplicatesTask } from './tasks.ts';

const STAGE = 'combine-duplicates';

/**
 * Applies the policy for repeated (user, item) pairs to a block whose indices ascend, and says how many ratings were
 * beyond the first of their pair. Returns the block itself when there are none. `rowData` belongs to the policy `last`,
 * whose block carries row numbers.
 */
export async function combineDuplicates(
  block: RatingBlock,
  policy: DuplicatePolicy,
  ids: Pick<IndexedRatings, 'users' | 'items' | 'swapped'>,
  rowData: PartitionRef | undefined,
  ref: PartitionRef,
  device: Device,
  ctx: ExecutionContext,
): Promise<{ block: RatingBlock; extra: number }> {
  const ranges = balancedRanges(block.offsets, taskCount(block.ratings));
  const lengthRefs = ranges.map((_, i): PartitionRef => ({ name: `${ref.name}/lengths`, partition: i, version: 0 }));
  const find = ranges.map(
    (range, i): FindDuplicatesTask => ({ kernel: 'find-duplicates', inputs: { block: block.ref }, outputs: { lengths: lengthRefs[i] }, params: { ...range } }),
  );
  const found = (await runStage(ctx, STAGE, device, find)).map(({ values }) => values as { extra: number; row: number; column: number });
  const lengths = new Int32Array(block.rows);
  for (const [i, lengthRef] of lengthRefs.entries()) {
    lengths.set((await device.fetch(lengthRef)).columns.lengths as Int32Array, ranges[i].from);
    device.release(lengthRef);
  }
  const extra = found.reduce((sum, values) => sum + values.extra, 0);
  if (extra > 0 && policy === 'error') {
    const first = found.find((values) => values.extra > 0) as { row: number; column: number };
    const [row, column] = [keyText(ids.users, first.row), keyText(ids.items, first.column)];
    const pair = ids.swapped ? `user ${column}, item ${row}` : `user ${row}, item ${column}`;
    throw new DataError(
      `${extra.toLocaleString('en')} ratings repeat an earlier (user, item) pair; the first pair: ${pair}`,
      { phase: 'read', advice: 'Choose what to do with them: --on-duplicates keep, last, mean or sum (onDuplicates)' },
    );
  }
  if (extra === 0 && rowData === undefined) return { block, extra };

  const keepAll = policy === 'keep';
  if (keepAll) for (let row = 0; row < block.rows; row++) lengths[row] = block.offsets[row + 1] - block.offsets[row];
  const combined = emptyBlock(lengths);
  device.put(ref, combined);
  const inputs = { block: block.ref, ...(rowData ? { rowData } : {}) };
  const combine = ranges.map(
    (range): CombineDuplicatesTask => ({
      kernel: 'combine-duplicates',
      inputs,
      outputs: { combined: ref },
      params: { ...range, policy: policy as Exclude<DuplicatePolicy, 'error'> },
    }),
  );
  await runStage(ctx, STAGE, device, combine);
  device.release(block.ref);
  if (rowData) device.release(rowData);
  return { block: blockOf(ref, combined), extra };
}
