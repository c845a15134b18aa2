import { hostDevice } from '../engine/devices.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import type { RowRange } from '../engine/plan/stages.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import { runTasks } from './run-tasks.ts';
import type { TaskOf } from './tasks.ts';

const STAGE = 'cut-blocks';

/** R cut into bands of rows and of columns with about as many ratings each; every rating is in exactly one block. */
export interface RatingGrid {
  readonly rowBands: readonly RowRange[];
  readonly columnBands: readonly RowRange[];
  /** Rating-blocks by row band and column band; columns keep their numbers. */
  readonly blocks: readonly (readonly PartitionRef[])[];
}

/**
 * Cuts a block into at most `rowBands` x `columnBands` blocks. `columnOffsets`: the ratings of the columns before each,
 * Int32[columns + 1].
 */
export async function cutIntoGrid(
  block: RatingBlock,
  columnOffsets: Int32Array,
  { rowBands, columnBands }: { readonly rowBands: number; readonly columnBands: number },
  ctx: ExecutionContext,
): Promise<RatingGrid> {
  const cut = { rowBands: balancedRanges(block.offsets, rowBands, 0), columnBands: balancedRanges(columnOffsets, columnBands, 0) };
  return { ...cut, blocks: await cutAt(block, cut, ctx) };
}

/** The blocks of given bands. `local`: each counts its columns from the first of its band. */
export async function cutAt(
  block: RatingBlock,
  { rowBands, columnBands }: Pick<RatingGrid, 'rowBands' | 'columnBands'>,
  ctx: ExecutionContext,
  { local = false }: { readonly local?: boolean } = {},
): Promise<RatingGrid['blocks']> {
  const name = dataSetName('grid');
  const blocks = rowBands.map((_, r) => columnBands.map((_column, c): PartitionRef => ({ name: `${name}/${r}`, partition: c, version: 0 })));
  const columnStarts = [0, ...columnBands.map(({ to }) => to)];
  const tasks = rowBands.map((range, r): TaskOf<'cut-block'> => {
    const outputs = Object.fromEntries(blocks[r].map((ref, c) => [`part.${c}`, ref]));
    return { kernel: 'cut-block', inputs: { block: block.ref }, outputs, params: { ...range, columnStarts, local } };
  });
  await runTasks(ctx, STAGE, hostDevice(ctx.executor).info.place, tasks);
  return blocks;
}
