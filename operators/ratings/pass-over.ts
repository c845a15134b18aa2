import { dataSetName, type Partition, type PartitionRef, partitionRef } from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { addSliced, type RangeKernel, type WholeTask, valuesOfStage } from '../tasks/run-tasks.ts';
import { contracts, type TaskOf, type ValuesOf } from '../tasks/tasks.ts';
import { blocksOf } from './parts-in-files.ts';
import { hostForm } from './rating-block.ts';
import type { HeldBlock, Ratings } from './ratings.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';

/** Runs tasks of the CPU's threads over ratings. */

const STAGE = 'look-at-ratings';

/**
 * Makes the task of a block. Its parameter `give` puts a partition onto the device and returns the reference
 * for the task.
 */
type TaskOfBlock<K extends RangeKernel> = (
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
    const ref = partitionRef(`${set}/${name}`);
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

/**
 * Each task sums the columns in arrays of its own. So there are at most SUMMING_TASKS tasks, and fewer for a
 * block with less than RATINGS_A_COLUMN ratings for each column and task.
 */
const SUMMING_TASKS = 32;
const RATINGS_A_COLUMN = 4;

/**
 * Sum of the ratings r and number of ratings of each column. With `means`, sums the remainder r - mean -
 * rows[row] instead of r. Sums do not depend on the number of threads.
 */
export async function columnSums(
  ratings: Ratings,
  columns: number,
  means: { readonly mean: number; readonly rows: Float32Array } | undefined,
  ctx: ExecutionContext,
): Promise<{ readonly sums: Float64Array; readonly counts: Int32Array }> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('columns');
  const [sums, counts] = [new Float64Array(columns), new Int32Array(columns)];
  let partition = 0;
  for await (const { from, block } of blocksOf(ratings, ctx)) {
    const held = partitionRef(`${name}/block`, partition);
    const rowMeans = partitionRef(`${name}/rowMeans`, partition);
    const given: Given[] = [[held, { ...hostForm(block), reused: true }, place]];
    if (means) {
      const values = means.rows.subarray(from, from + block.rows);
      given.push([rowMeans, { layout: 'means', rows: block.rows, columns: { values }, reused: true }, place]);
    }
    const most = Math.floor(block.ratings / (RATINGS_A_COLUMN * columns));
    const steps = new StepList(contracts);
    const ranges = balancedRanges(block.offsets, Math.max(1, Math.min(SUMMING_TASKS, most)));
    const refs = ranges.map((range, slice) => {
      const ref = partitionRef(`${name}/sums.${partition}`, slice);
      const task: TaskOf<'sum-columns'> = {
        kernel: 'sum-columns',
        inputs: { block: held, ...(means ? { rowMeans } : {}) },
        outputs: { sums: ref },
        params: { ...range, columns, ...(means ? { mean: means.mean } : {}) },
      };
      steps.handOut(STAGE, ref, place, steps.task(STAGE, place, task));
      return ref;
    });
    steps.free(STAGE, place, [...given.map(([ref]) => ref), ...refs]);
    for (const { columns: found } of (await runSteps(steps.steps, ctx, { given })).handed) {
      const [more, count] = [found.sums as Float64Array, found.counts as Int32Array];
      for (let column = 0; column < columns; column++) {
        sums[column] += more[column];
        counts[column] += count[column];
      }
    }
    partition++;
  }
  return { sums, counts };
}
