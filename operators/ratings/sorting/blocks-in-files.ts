import type { PartitionRef } from '../../../engine/partition.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { blockBytes } from '../../planner/sizes.ts';
import { blocksOf } from '../parts-in-files.ts';
import { hostForm, type RatingBlock } from '../rating-block.ts';
import type { Ratings } from '../ratings.ts';
import { balancedRanges, taskCount } from '../row-ranges.ts';
import { cutColumns, placeColumns } from './columns-of-block.ts';

const STAGE = 'cut-columns';

/** A block R(ij) in a file. Its row pointers are only there; memory has the row ranges of its tasks. */
export interface BlockInFile {
  readonly ref: PartitionRef;
  readonly rows: number;
  readonly ratings: number;
  readonly slices: readonly RowRange[];
  readonly offsets?: undefined;
}

/**
 * Cuts each part of ratings in files by ranges of columns, and writes each block to a file, under the names
 * `name`: all blocks of the first part, then of the second. Column numbers start at 0 in each block. The
 * files of the parts stay. Memory has one part and its blocks at a time. Throws CapacityError if the disk has
 * too little room.
 */
export async function blocksInFiles(
  ratings: Ratings,
  columns: readonly RowRange[],
  name: string,
  ctx: ExecutionContext,
): Promise<BlockInFile[]> {
  const bytes = blockBytes(columns.length * ratings.rows, ratings.ratings);
  await ctx.executor.spilled?.requireRoom(bytes);
  const blocks: BlockInFile[] = [];
  for await (const { block } of blocksOf(ratings, ctx)) {
    const first = blocks.length;
    const refOf = (range: number): PartitionRef => ({ name, partition: first + range, version: 0 });
    const cut = cutColumns(block, columns, refOf);
    await placeColumns(cut, { stage: STAGE, local: true }, ctx);
    for (const own of cut.blocks) blocks.push(await blockInFile(own, ctx));
    // The arrays of the blocks are garbage now.
    await hostDevice(ctx.executor).trim();
  }
  return blocks;
}

async function blockInFile(block: RatingBlock, ctx: ExecutionContext): Promise<BlockInFile> {
  const { ref, rows, ratings, offsets } = block;
  const { place } = hostDevice(ctx.executor).info;
  const steps = new StepList({});
  steps.move(STAGE, ref, place, SPILL);
  steps.free(STAGE, place, [ref]);
  await runSteps(steps.steps, ctx, { given: [[ref, hostForm(block), place]] });
  return { ref, rows, ratings, slices: balancedRanges(offsets, taskCount(ratings)) };
}

/** Removes the files of blocks. */
export async function freeBlocks(blocks: readonly BlockInFile[], ctx: ExecutionContext): Promise<void> {
  const steps = new StepList({});
  steps.free(
    STAGE,
    SPILL,
    blocks.map(({ ref }) => ref),
  );
  await runSteps(steps.steps, ctx);
}
