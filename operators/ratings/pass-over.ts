/** Runs tasks of the CPU's threads over ratings. */
import { dataSetName, type Partition, type PartitionRef } from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { addSliced, type RangeKernel, type WholeTask } from '../tasks/run-tasks.ts';
import { valuesOfStage } from '../tasks/task-values.ts';
import { contracts, type ValuesOf } from '../tasks/tasks.ts';
import { blocksOf } from './parts-in-files.ts';
import type { HeldBlock, Ratings } from './ratings.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';

const STAGE = 'look-at-ratings';

/**
 * Makes the task of a block. Its parameter `give` puts a partition onto the device and returns the reference
 * for the task.
 */
export type TaskOfBlock<K extends RangeKernel> = (
  part: HeldBlock,
  give: (name: string, partition: Partition) => PartitionRef,
) => WholeTask<K>;

/** Runs a task over all ratings, part by part, and returns the values of all tasks. */
export async function passOver<K extends RangeKernel>(
  ratings: Ratings,
  ctx: ExecutionContext,
  taskOf: TaskOfBlock<K>,
): Promise<ValuesOf<K>[]> {
  const values: ValuesOf<K>[] = [];
  for await (const part of blocksOf(ratings, ctx)) {
    const slices = ratings.parts.find((one) => one.from === part.from)?.slices;
    values.push(...(await passOverBlock(part, ctx, taskOf, slices)));
  }
  return values;
}

/** Like passOver, for one block. `slices`: its ranges of rows, one for each task, if they are given. */
export async function passOverBlock<K extends RangeKernel>(
  part: HeldBlock,
  ctx: ExecutionContext,
  taskOf: TaskOfBlock<K>,
  slices: readonly RowRange[] = balancedRanges(part.block.offsets, taskCount(part.block.ratings)),
): Promise<readonly ValuesOf<K>[]> {
  const { place } = hostDevice(ctx.executor).info;
  const set = dataSetName('facts');
  const given: Given[] = [];
  const task = taskOf(part, (name, data) => {
    const ref = { name: `${set}/${name}`, partition: 0, version: 0 };
    given.push([ref, { ...data, reused: true }, place]);
    return ref;
  });
  const steps = new StepList(contracts);
  addSliced<K>(steps, STAGE, place, task, slices);
  steps.free(
    STAGE,
    place,
    given.map(([ref]) => ref),
  );
  return valuesOfStage(await runSteps(steps.steps, ctx, { given }), STAGE, task.kernel);
}
