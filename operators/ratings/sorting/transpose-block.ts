import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import type { PartitionRef } from '../../../engine/partition.ts';
import type { RatingBlock } from '../rating-block.ts';
import { balancedRanges } from '../row-ranges.ts';
import type { PairRoom } from './pair-room.ts';
import { sortIntoRows } from './sort-into-rows.ts';

/**
 * Transposes a block: its columns become rows, with ascending indices. `lengths`: number of ratings of each
 * column. `room`: memory for the result.
 */
export async function transposeBlock(
  block: RatingBlock,
  lengths: Int32Array,
  ctx: ExecutionContext,
  room?: PairRoom['columns'],
): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, 4 * hostDevice(ctx.executor).info.parallelism);
  const ref: PartitionRef = { ...block.ref, name: `${block.ref.name}/transposed` };
  const sorted = await sortIntoRows(groups, { lengths, columns: block.rows, order: 'kept', room }, ref, ctx, {
    count: (ranges, counts, { bands, bandCount, rowBits }) => ({
      kernel: 'count-columns',
      inputs: { block: block.ref, bands },
      outputs: { counts },
      params: {
        starts: [...ranges.map(({ from }) => from), ranges[ranges.length - 1].to],
        bands: bandCount,
        rowBits,
      },
    }),
    scatter: (range, cursors, { bands, block: transposed, rowBits, columnBits }) => ({
      kernel: 'scatter-columns',
      inputs: { block: block.ref, bands, cursors },
      outputs: { transposed },
      params: { ...range, rowBits, columnBits },
    }),
  });
  return sorted.block;
}
