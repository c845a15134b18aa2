import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { hostForm } from '../ratings/rating-block.ts';
import { balancedRanges, taskCount } from '../ratings/row-ranges.ts';
import { blocksOf } from '../ratings/parts-in-files.ts';
import type { HeldBlock, Ratings } from '../ratings/ratings.ts';
import { addSliced, type WholeTask } from '../tasks/run-tasks.ts';
import { valuesOfStage } from '../tasks/task-values.ts';
import { contracts, type ValuesOf } from '../tasks/tasks.ts';
import { type BlockMeans, DAMPING, type RatingShape, type SideFacts } from './rating-facts.ts';

const STAGE = 'look-at-ratings';

/** Ratings by both sides. */
interface Sides {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
}

/** The shape of ratings, and γ of rowFacts, which follows from the items' sums. */
export interface SortedFacts extends RatingShape {
  readonly columns: Float32Array;
}

/**
 * The facts of rowFacts but for the users' means, by one pass over the ratings by item in tasks on slices of
 * rows, whose cut and sums do not depend on the number of threads.
 */
export async function sortedRatingFacts(
  { byUser, byItem }: Sides,
  ctx: ExecutionContext,
): Promise<SortedFacts> {
  const sums = sharedArray(Float64Array, byItem.rows);
  const total = totalOf(
    await passOver(byItem, ctx, ({ from, block }, given) => {
      const rowSums = given('rowSums', {
        layout: 'row-sums',
        rows: block.rows,
        columns: { sums: sums.subarray(from, from + block.rows) },
      });
      return {
        kernel: 'sum-ratings',
        inputs: { block: given('block', hostForm(block)) },
        outputs: { rowSums },
        params: {},
      };
    }),
  );
  const { sum, least, most, whole, squares } = total;
  // Equal ratings have a mean without rounding.
  const mean = least === most ? least : sum / byItem.ratings;
  const columns = sharedArray(Float32Array, byItem.rows);
  for (const { from, rows, offsets } of byItem.parts) {
    for (let row = 0; row < rows; row++) {
      const count = offsets[row + 1] - offsets[row];
      columns[from + row] = (sums[from + row] - count * mean) / (count + DAMPING.items);
    }
  }
  const deviation = least === most ? 0 : Math.sqrt(squares / byItem.ratings);
  return {
    ratings: byItem.ratings,
    mean,
    deviation,
    least,
    most,
    whole,
    users: sideOf(byUser),
    items: sideOf(byItem),
    columns,
  };
}

/** Damped means of rowFacts: those of the users by another pass, over the ratings by user. */
export async function sortedMeans(
  byUser: Ratings,
  { mean, columns }: Pick<SortedFacts, 'mean' | 'columns'>,
  ctx: ExecutionContext,
): Promise<BlockMeans> {
  const rows = sharedArray(Float32Array, byUser.rows);
  await passOver(byUser, ctx, ({ from, block }, given) => {
    const columnMeans = given('columnMeans', {
      layout: 'means',
      rows: columns.length,
      columns: { values: columns },
    });
    const rowMeans = given('rowMeans', {
      layout: 'means',
      rows: block.rows,
      columns: { values: rows.subarray(from, from + block.rows) },
    });
    return {
      kernel: 'damped-means',
      inputs: { block: given('block', hostForm(block)), columnMeans },
      outputs: { rowMeans },
      params: { mean, damping: DAMPING.users },
    };
  });
  return { mean, rows, columns };
}

/** The rows with ratings, counted by their pointers. */
export function sideOf(ratings: Ratings): SideFacts {
  let [rated, single] = [0, 0];
  for (const { rows, offsets } of ratings.parts) {
    for (let row = 0; row < rows; row++) {
      const count = offsets[row + 1] - offsets[row];
      if (count > 0) rated++;
      if (count === 1) single++;
    }
  }
  return { rated, single };
}

/** The sums of all slices, in their order; squares are those of differences to the mean. */
export function totalOf(slices: readonly ValuesOf<'sum-ratings'>[]): ValuesOf<'sum-ratings'> {
  return slices.reduce((all, one) => {
    const count = all.count + one.count;
    const between = one.mean - all.mean;
    const share = count === 0 ? 0 : one.count / count;
    return {
      sum: all.sum + one.sum,
      least: Math.min(all.least, one.least),
      most: Math.max(all.most, one.most),
      whole: all.whole && one.whole,
      count,
      mean: all.mean + between * share,
      squares: all.squares + one.squares + between * between * all.count * share,
    };
  });
}

/**
 * Runs a task over all ratings, part by part where they lie in parts. `taskOf` names the partitions that it
 * gives.
 */
export async function passOver<K extends 'sum-ratings' | 'damped-means' | 'standardize'>(
  ratings: Ratings,
  ctx: ExecutionContext,
  taskOf: (part: HeldBlock, given: (what: string, partition: Partition) => PartitionRef) => WholeTask<K>,
): Promise<ValuesOf<K>[]> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('facts');
  const values: ValuesOf<K>[] = [];
  let number = 0;
  for await (const part of blocksOf(ratings, ctx)) {
    const given: Given[] = [];
    const task = taskOf(part, (what, partition) => {
      const ref = { name: `${name}/${what}`, partition: number, version: 0 };
      given.push([ref, { ...partition, reused: true }, place]);
      return ref;
    });
    const steps = new StepList(contracts);
    // The slices of all passes over the ratings.
    addSliced<K>(
      steps,
      STAGE,
      place,
      task,
      slicesOf(ratings, part) ?? balancedRanges(part.block.offsets, taskCount(part.block.ratings)),
    );
    steps.free(
      STAGE,
      place,
      given.map(([ref]) => ref),
    );
    values.push(...valuesOfStage(await runSteps(steps.steps, ctx, { given }), STAGE, task.kernel));
    number++;
  }
  return values;
}

function slicesOf(ratings: Ratings, { from }: HeldBlock): readonly RowRange[] | undefined {
  return ratings.parts.find((part) => part.from === from)?.slices;
}
