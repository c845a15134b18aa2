import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { RatingBlock } from '../rating-block.ts';
import { balancedRanges } from '../row-ranges.ts';
import type { PairRoom } from './pair-room.ts';
import { sortIntoRows, STAGE } from './sort-into-rows.ts';

/**
 * The columns of a block as rows, in which its rows ascend. `lengths`: ratings of each column. `room`: memory
 * for the result.
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

/** The ratings of each of `columns` columns of a block. */
export async function columnLengths(
  block: RatingBlock,
  columns: number,
  ctx: ExecutionContext,
): Promise<Int32Array> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const name = dataSetName('column-lengths');
  const bands: PartitionRef = { name: `${name}/bands`, partition: 0, version: 0 };
  // A task counts for all columns, which must not be more work than its ratings.
  const ranges = balancedRanges(
    block.offsets,
    Math.max(1, Math.min(4 * parallelism, Math.floor(block.ratings / columns / 4))),
  );
  const steps = new StepList(contracts);
  const counts = ranges.map(({ from, to }, partition): PartitionRef => {
    const ref = { name: `${name}/counts`, partition, version: 0 };
    const counting = steps.task(STAGE, place, {
      kernel: 'count-columns',
      inputs: { block: block.ref, bands },
      outputs: { counts: ref },
      params: { starts: [from, to], bands: columns, rowBits: 0 },
    });
    steps.handOut(STAGE, ref, place, counting);
    return ref;
  });
  steps.free(STAGE, place, [bands, ...counts]);
  const placeOf = sharedArray(Uint32Array, columns);
  const firstRow = sharedArray(Int32Array, columns + 1);
  for (let column = 0; column <= columns; column++) firstRow[column] = column;
  placeOf.set(firstRow.subarray(0, columns));
  const { handed } = await runSteps(steps.steps, ctx, {
    given: [[bands, { layout: 'row-bands', rows: columns, columns: { placeOf, firstRow } }, place]],
  });
  const lengths = new Int32Array(columns);
  for (const { columns: found } of handed) {
    const own = found.counts as Int32Array;
    for (let column = 0; column < columns; column++) lengths[column] += own[column];
  }
  return lengths;
}
