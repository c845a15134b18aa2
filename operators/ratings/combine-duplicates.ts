import { hostDevice } from '../../engine/run/devices.ts';
import { DataError } from '../../engine/errors.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { IndexedRatings } from './index-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from './rating-block.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';
import { addSliced } from '../tasks/run-tasks.ts';
import { valuesOfStage } from '../tasks/task-values.ts';
import { contracts, type DuplicatePolicy, type TaskOf, type ValuesOf } from '../tasks/tasks.ts';

const STAGE = 'combine-duplicates';

/**
 * Applies the policy for repeated (user, item) pairs to a block whose indices ascend, and counts the ratings that were
 * beyond the first of their pair. Returns the block itself when there are none. `rowData` belongs to the policy `last`,
 * whose block carries row numbers.
 */
export async function combineDuplicates(
  block: RatingBlock,
  policy: DuplicatePolicy,
  ids: Pick<IndexedRatings, 'users' | 'items' | 'swapped'>,
  rowData: PartitionRef | undefined,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<{ block: RatingBlock; extra: number }> {
  const ranges = balancedRanges(block.offsets, taskCount(block.ratings));
  const lengthRefs = ranges.map((_, i): PartitionRef => ({ name: `${ref.name}/lengths`, partition: i, version: 0 }));
  const { place } = hostDevice(ctx.executor).info;
  const finding = new StepList(contracts);
  ranges.forEach((range, i) => {
    const task: TaskOf<'find-duplicates'> = { kernel: 'find-duplicates', inputs: { block: block.ref }, outputs: { lengths: lengthRefs[i] }, params: { ...range } };
    finding.handOut(STAGE, lengthRefs[i], place, finding.task(STAGE, place, task));
  });
  finding.free(STAGE, place, lengthRefs);
  const results = await runSteps(finding.steps, ctx);
  const found = valuesOfStage(results, STAGE, 'find-duplicates');
  const lengths = new Int32Array(block.rows);
  results.handed.forEach(({ columns }, i) => lengths.set(columns.lengths as Int32Array, ranges[i].from));
  const extra = found.reduce((sum, values) => sum + values.extra, 0);
  if (extra > 0 && policy === 'error') {
    const first = found.find((values) => values.extra > 0) as ValuesOf<'find-duplicates'>;
    const [row, column] = [keyText(ids.users, first.row), keyText(ids.items, first.column)];
    const pair = ids.swapped ? `user ${column}, item ${row}` : `user ${row}, item ${column}`;
    throw new DataError(
      `${extra.toLocaleString('en')} ratings repeat an earlier (user, item) pair; the first pair: ${pair}`,
      { phase: 'read', advice: "Choose a policy for them, such as onDuplicates: 'keep', or last, mean or sum" },
    );
  }
  if (extra === 0 && rowData === undefined) return { block, extra };

  const keepAll = policy === 'keep';
  if (keepAll) for (let row = 0; row < block.rows; row++) lengths[row] = block.offsets[row + 1] - block.offsets[row];
  const combined = emptyBlock(lengths);
  const combining = new StepList(contracts);
  const inputs = { block: block.ref, ...(rowData ? { rowData } : {}) };
  addSliced(combining, STAGE, place, { kernel: 'combine-duplicates', inputs, outputs: { combined: ref }, params: { policy: policy as Exclude<DuplicatePolicy, 'error'> } }, ranges);
  combining.free(STAGE, place, Object.values(inputs));
  await runSteps(combining.steps, ctx, { given: [[ref, combined, place]] });
  return { block: blockOf(ref, combined), extra };
}
