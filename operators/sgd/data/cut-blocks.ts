import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { contracts } from '../../tasks/tasks.ts';

/** A partition in host memory, and its name. */
export interface HostPart {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readonly ratings: number;
}

/** The bands of rows and of columns that R is cut into. */
export interface GridBands {
  readonly rows: readonly RowRange[];
  readonly columns: readonly RowRange[];
}

/**
 * Cuts the ratings, which lie at the CPU device, into blocks by row band and column band; every rating is in exactly one block.
 * `local`: each block counts its columns from the first of its band; else they keep their numbers.
 */
export async function cutBlocks(block: RatingBlock, { rows, columns }: GridBands, local: boolean, ctx: ExecutionContext): Promise<HostPart[][]> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('grid');
  const columnStarts = [0, ...columns.map(({ to }) => to)];
  const steps = new StepList(contracts);
  const refs = rows.map((range, r) => {
    const row = columns.map((_, c): PartitionRef => ({ name: `${name}/${r}`, partition: c, version: 0 }));
    const outputs = Object.fromEntries(row.map((ref, c) => [`part.${c}`, ref]));
    steps.task('cut-blocks', place, { kernel: 'cut-block', inputs: { block: block.ref }, outputs, params: { ...range, columnStarts, local } });
    for (const ref of row) steps.handOut('cut-blocks', ref, place);
    steps.free('cut-blocks', place, row);
    return row;
  });
  const results = await runSteps(steps.steps, ctx);
  return refs.map((row, r) => {
    const partitions = results.partitions(`${name}/${r}`);
    return row.map((ref, c) => ({ ref, partition: partitions[c], ratings: partitions[c].columns.indices.length }));
  });
}
