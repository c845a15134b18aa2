import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { contracts } from '../../tasks/tasks.ts';
import { hostForm, type RatingBlock } from '../rating-block.ts';
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
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('columns');
  const block: PartitionRef = { name: `${name}/whole`, partition: 0, version: 0 };
  const parts = blocks.map((_, partition): PartitionRef => ({ name: `${name}/part`, partition, version: 0 }));
  const steps = new StepList(contracts);
  const outputs = Object.fromEntries(parts.map((ref, part) => [`part.${part}`, ref]));
  addSliced(
    steps,
    stage,
    place,
    {
      kernel: 'place-columns',
      inputs: { block },
      outputs,
      params: { columnStarts: [0, ...ranges.map(({ to }) => to)], local },
    },
    balancedRanges(whole.offsets, taskCount(whole.ratings)),
  );
  steps.free(stage, place, [block, ...parts]);
  const given = [whole, ...blocks].map((one, at): Given => [
    at === 0 ? block : parts[at - 1],
    { ...hostForm(one), reused: true },
    place,
  ]);
  await runSteps(steps.steps, ctx, { given });
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
