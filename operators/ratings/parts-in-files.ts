import { CapacityError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import {
  dataSetName,
  type PartitionRef,
  partitionRef,
  sharedArray,
  type Partition,
  partitionBytes,
} from '../../engine/partition.ts';
import { SPILL, HOST, type Place } from '../../engine/plan/place.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice, deviceAt } from '../../engine/run/devices.ts';
import { freeAt, giveTo, takeFrom, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { blockLimit } from '../planner/sizes.ts';
import { outputsOf, type RangeKernel, type WholeTask, TaskRun } from '../tasks/run-tasks.ts';
import { type TaskOf, type ValuesOf } from '../tasks/tasks.ts';
import {
  blockOf,
  hostForm,
  type RatingBlock,
  type HeldBlock,
  ofParts,
  partOfBlocks,
  type RatingPart,
  type Ratings,
  soleBlock,
  type ColumnBlock,
} from './ratings.ts';
import { balancedRanges, taskCount } from './row-ranges.ts';

const STAGE = 'rating-parts';

/**
 * Yields the ratings block by block: parts in the order of rows, blocks of a part in the order of columns. A
 * part in a file is read when it is its turn, into the arrays of the part before: use a block only until the
 * next one is requested.
 */
export async function* blocksOf(ratings: Ratings, ctx: ExecutionContext): AsyncGenerator<HeldBlock, void> {
  for (const part of ratings.parts) {
    if (part.blocks === undefined) yield* blockInFile(part, ctx);
    else for (const block of part.blocks) yield { from: part.from, ...block };
  }
}

async function* blockInFile(
  { from, ref }: RatingPart,
  ctx: ExecutionContext,
): AsyncGenerator<HeldBlock, void> {
  const { place } = hostDevice(ctx.executor).info;
  const reading = new StepList({});
  reading.move(STAGE, ref, SPILL, place);
  reading.handOut(STAGE, ref, place);
  const { handed } = await runSteps(reading.steps, ctx);
  try {
    yield { from, firstColumn: 0, block: blockOf(ref, handed[0]) };
  } finally {
    await freeAt(ctx, STAGE, place, [ref]);
  }
}

/** All ratings as one block. Throws CapacityError if they exceed a block. */
export async function inMemory(ratings: Ratings, ctx: ExecutionContext): Promise<RatingBlock> {
  const block = soleBlock(ratings);
  if (block !== undefined) return block;
  if (ratings.ratings > blockLimit.ratings)
    throw new CapacityError(
      `${formatCount(ratings.ratings)} ratings are more than the ${formatCount(blockLimit.ratings)} that rankings of a validation set leave out`,
      {
        phase: 'train',
        advice: 'Leave rankings out while training, and use a part of the data to choose parameters',
      },
    );
  return joinParts(blocksOf(ratings, ctx), ratings.rows, ratings.ratings, ctx);
}

/**
 * Writes parts to files as they arrive, and frees them in the CPU's memory. `slices`: the slices of a pass
 * over all ratings, in order, if a part ends where a slice ends.
 */
export async function spillParts(
  parts: AsyncIterable<HeldBlock>,
  slices: readonly RowRange[] | undefined,
  name: string,
  ctx: ExecutionContext,
): Promise<Ratings> {
  const spilled: RatingPart[] = [];
  for await (const { from, block } of parts) {
    const ref = partitionRef(name, spilled.length);
    await moveToFile(block.ref, ref, ctx);
    const own = slices
      ?.filter((slice) => slice.from >= from && slice.to <= from + block.rows)
      .map((slice) => ({ from: slice.from - from, to: slice.to - from }));
    const { rows, ratings, offsets } = block;
    spilled.push({ ref, from, rows, ratings, offsets, ...(own && { slices: own }) });
  }
  return ofParts(spilled);
}

/** Moves a partition from the CPU's memory to a file, under another name. */
async function moveToFile(ref: PartitionRef, as: PartitionRef, ctx: ExecutionContext): Promise<void> {
  const { place } = hostDevice(ctx.executor).info;
  const steps = new StepList({});
  steps.move(STAGE, ref, place, SPILL, { as });
  steps.free(STAGE, place, [ref]);
  await runSteps(steps.steps, ctx);
}

/** Writes a block of this thread to a file, under its own name. */
export async function blockToFile(block: RatingBlock, ctx: ExecutionContext): Promise<void> {
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[block.ref, hostForm(block)]]);
  await moveToFile(block.ref, block.ref, ctx);
}

/**
 * The same rows with the ratings that `change` returns for each block. For parts in files, the old file is
 * removed and a new one written.
 */
export async function replaceParts(
  ratings: Ratings,
  change: (block: HeldBlock) => RatingBlock | Promise<RatingBlock>,
  ctx: ExecutionContext,
): Promise<Ratings> {
  const parts: RatingPart[] = [];
  for (const part of ratings.parts) {
    const { from, blocks } = part;
    if (blocks === undefined)
      for await (const held of blockInFile(part, ctx))
        parts.push(await replacedInFile(part, held.block, await change(held), ctx));
    else {
      const changed = [];
      for (const one of blocks) changed.push({ ...one, block: await change({ from, ...one }) });
      parts.push(partOfBlocks(from, changed));
    }
  }
  return ofParts(parts);
}

async function replacedInFile(
  old: RatingPart,
  read: RatingBlock,
  block: RatingBlock,
  ctx: ExecutionContext,
): Promise<RatingPart> {
  const ref: PartitionRef = { ...old.ref, version: old.ref.version + 1 };
  await blockToFile({ ...block, ref }, ctx);
  await freeAt(ctx, STAGE, SPILL, [old.ref]);
  // If the row offsets are the arrays that were read, the next part will overwrite them; the part's own,
  // equal ones are kept.
  const offsets = block.offsets === read.offsets ? old.offsets : block.offsets;
  return { ...old, ref, ratings: block.ratings, offsets };
}

/**
 * Copies parts into one block of `rows` rows and at most `most` ratings. Frees each part before the next one
 * is made, so that only one is in memory twice.
 */
export async function joinParts(
  parts: AsyncIterable<HeldBlock>,
  rows: number,
  most: number,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const { place } = hostDevice(ctx.executor).info;
  const [offsets, indices, values] = [
    sharedArray(Int32Array, rows + 1),
    sharedArray(Uint32Array, most),
    sharedArray(Float32Array, most),
  ];
  let ratings = 0;
  for await (const { from, block } of parts) {
    for (let row = 0; row < block.rows; row++) offsets[from + row + 1] = ratings + block.offsets[row + 1];
    indices.set(block.indices, ratings);
    values.set(block.values, ratings);
    ratings += block.ratings;
    await takeFrom(ctx, 'rating-parts', place, [block.ref]);
  }
  const ref = partitionRef(dataSetName('joined'));
  const joined: RatingBlock = {
    ref,
    rows,
    ratings,
    offsets,
    indices: indices.subarray(0, ratings),
    values: values.subarray(0, ratings),
  };
  await giveTo(ctx, place, [[ref, hostForm(joined)]]);
  return joined;
}

const LEAVE = 'leave-ratings';

/** Number of bytes that are freed before the garbage collector runs. */
const LEAVE_BYTES = 2 ** 32;

/**
 * Frees the ratings in host memory for the rest of a run, once only a device needs them. The row offsets
 * stay. `refs`: their names in host memory. They are freed in pieces of LEAVE_BYTES with a garbage collection
 * after each, since the system takes seconds to reclaim gigabytes.
 */
export async function leaveRatings(
  { parts }: Ratings,
  refs: readonly PartitionRef[],
  at: Place,
  ctx: ExecutionContext,
): Promise<void> {
  await deviceAt(ctx.executor, at).leaveHost?.(refs);
  const host = hostDevice(ctx.executor);
  const blocks = parts.flatMap(({ blocks: own = [] }) => own);
  while (blocks.length > 0) {
    const steps = new StepList({});
    const leaving: ReturnType<typeof leftBy> = [];
    for (
      let bytes = 0;
      bytes < LEAVE_BYTES && blocks.length > 0;
      bytes += partitionBytes(leaving[leaving.length - 1][1])
    )
      leaving.push(...leftBy(blocks.splice(0, 1)[0], host.info.place));
    for (const [ref, , place] of leaving) steps.free(LEAVE, place, [ref]);
    await runSteps(steps.steps, ctx, { given: leaving.splice(0) });
    await host.trim();
  }
  await freeAt(ctx, LEAVE, HOST, refs);
}

/**
 * Replaces a block's ratings by empty arrays. Returns the partitions to free: one in host memory, and one at
 * `place` for the CPU's threads, which hold references to the same arrays.
 */
function leftBy(held: ColumnBlock, place: Place): [ref: PartitionRef, partition: Partition, at: Place][] {
  const { block } = held;
  held.block = { ...block, indices: new Uint32Array(0), values: new Float32Array(0) };
  return [
    [block.ref, { ...hostForm(block), reused: true }, HOST],
    [block.ref, hostForm(block), place],
  ];
}

/** Runs tasks of the CPU's threads over ratings. */

const PASS = 'look-at-ratings';

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
  const run = new TaskRun(ctx, PASS);
  const task = taskOf(part, (name, data) => run.send(name, { ...data, reused: true }));
  run.sliced<K>(task, slices);
  return run.values(task.kernel);
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
  const [sums, counts] = [new Float64Array(columns), new Int32Array(columns)];
  for await (const { from, block } of blocksOf(ratings, ctx)) {
    const run = new TaskRun(ctx, PASS);
    const values = means?.rows.subarray(from, from + block.rows);
    const inputs = {
      block: run.send('block', { ...hostForm(block), reused: true }),
      ...(values && {
        rowMeans: run.send('row-means', {
          layout: 'means',
          rows: block.rows,
          columns: { values },
          reused: true,
        }),
      }),
    };
    const most = Math.floor(block.ratings / (RATINGS_A_COLUMN * columns));
    const ranges = balancedRanges(block.offsets, Math.max(1, Math.min(SUMMING_TASKS, most)));
    const tasks = ranges.map((range, slice): TaskOf<'sum-columns'> => ({
      kernel: 'sum-columns',
      inputs,
      outputs: { sums: run.ref('sums', slice) },
      params: { ...range, columns, ...(means ? { mean: means.mean } : {}) },
    }));
    for (const { columns: found } of await outputsOf(run, tasks)) {
      const [more, count] = [found.sums as Float64Array, found.counts as Int32Array];
      for (let column = 0; column < columns; column++) {
        sums[column] += more[column];
        counts[column] += count[column];
      }
    }
  }
  return { sums, counts };
}
