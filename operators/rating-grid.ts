import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges, type RowRange } from './row-ranges.ts';
import type { CutBlockTask } from './tasks.ts';

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
  device: Device,
  ctx: ExecutionContext,
): Promise<RatingGrid> {
  const rows = balancedRanges(block.offsets, rowBands, 0);
  const columns = balancedRanges(columnOffsets, columnBands, 0);
  const name = dataSetName('grid');
  const blocks = rows.map((_, r) => columns.map((_column, c): PartitionRef => ({ name: `${name}/${r}`, partition: c, version: 0 })));
  const columnStarts = [0, ...columns.map(({ to }) => to)];
  const tasks = rows.map((range, r): CutBlockTask => {
    const outputs = Object.fromEntries(blocks[r].map((ref, c) => [`part.${c}`, ref]));
    return { kernel: 'cut-block', inputs: { block: block.ref }, outputs, params: { ...range, columnStarts } };
  });
  await runStage(ctx, STAGE, device, tasks);
  return { rowBands: rows, columnBands: columns, blocks };
}
