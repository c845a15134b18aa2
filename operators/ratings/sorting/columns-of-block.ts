import { type PartitionRef, partitionRef, sharedArray } from '../../../engine/partition.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { freeAt } from '../../../engine/run/run-steps.ts';
import { blockBytes } from '../../planner/sizes.ts';
import { TaskRun } from '../../tasks/run-tasks.ts';
import { blocksOf, blockToFile } from '../parts-in-files.ts';
import { hostForm, type RatingBlock, type Ratings } from '../ratings.ts';
import { balancedRanges, taskCount } from '../row-ranges.ts';

/**
 * The blocks R(ij) into which the ratings of some rows are cut, one for each range of columns. Their ratings
 * are filled in later.
 */
export interface ColumnCut {
  readonly whole: RatingBlock;
  /** Consecutive, from column 0 on. */
  readonly ranges: readonly RowRange[];
  readonly blocks: readonly RatingBlock[];
}

/** Allocates the blocks, with row pointers and room for the ratings. */
export function cutColumns(
  whole: RatingBlock,
  ranges: readonly RowRange[],
  refOf: (range: number) => PartitionRef,
): ColumnCut {
  const blocks = rowPointers(whole, ranges).map((offsets, range): RatingBlock => {
    const ratings = offsets[whole.rows];
    return {
      ref: refOf(range),
      rows: whole.rows,
      ratings,
      offsets,
      indices: sharedArray(Uint32Array, ratings),
      values: sharedArray(Float32Array, ratings),
    };
  });
  return { whole, ranges, blocks };
}

/**
 * Copies the ratings into the blocks, with one task for each slice of rows. If `local`, column numbers start
 * at 0 in each block; else they stay.
 */
export async function placeColumns(
  { whole, ranges, blocks }: ColumnCut,
  { stage, local }: { readonly stage: string; readonly local: boolean },
  ctx: ExecutionContext,
): Promise<void> {
  const run = new TaskRun(ctx, stage);
  const send = (name: string, block: RatingBlock) => run.send(name, { ...hostForm(block), reused: true });
  const task = {
    kernel: 'place-columns',
    inputs: { block: send('whole', whole) },
    outputs: Object.fromEntries(blocks.map((block, part) => [`part.${part}`, send(`part.${part}`, block)])),
    params: { columnStarts: [0, ...ranges.map(({ to }) => to)], local },
  } as const;
  run.sliced(task, balancedRanges(whole.offsets, taskCount(whole.ratings)));
  await run.end();
}

/**
 * Row offsets of the block of each range. The columns of a row ascend, so binary search finds the end of each
 * range.
 */
function rowPointers({ rows, offsets, indices }: RatingBlock, ranges: readonly RowRange[]): Int32Array[] {
  const pointers = ranges.map(() => sharedArray(Int32Array, rows + 1));
  for (let row = 0; row < rows; row++) {
    let from = offsets[row];
    for (let range = 0; range < ranges.length; range++) {
      let [to, end] = [from, offsets[row + 1]];
      if (range === ranges.length - 1) to = end;
      while (to < end) {
        const middle = (to + end) >>> 1;
        if (indices[middle] < ranges[range].to) to = middle + 1;
        else end = middle;
      }
      pointers[range][row + 1] = pointers[range][row] + to - from;
      from = to;
    }
  }
  return pointers;
}

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
    const refOf = (range: number) => partitionRef(name, first + range);
    const cut = cutColumns(block, columns, refOf);
    await placeColumns(cut, { stage: STAGE, local: true }, ctx);
    for (const own of cut.blocks) {
      const { ref, rows, ratings, offsets } = own;
      await blockToFile(own, ctx);
      blocks.push({ ref, rows, ratings, slices: balancedRanges(offsets, taskCount(ratings)) });
    }
    // The arrays of the blocks are garbage now.
    await hostDevice(ctx.executor).trim();
  }
  return blocks;
}

/** Removes the files of blocks. */
export async function freeBlocks(blocks: readonly BlockInFile[], ctx: ExecutionContext): Promise<void> {
  await freeAt(
    ctx,
    STAGE,
    SPILL,
    blocks.map(({ ref }) => ref),
  );
}
