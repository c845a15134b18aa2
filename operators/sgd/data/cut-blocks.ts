import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { heldBlocks, isInParts, type SortedRatings } from '../../ratings/spilled-ratings.ts';
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
 * Cuts sorted ratings, which lie at the CPU device or in parts in memory, into blocks by row band and column
 * band; every rating is in exactly one block. `local`: each block counts its columns from the first of its
 * band; else they keep their numbers. Where the columns are one band blocks are the rows themselves, over the
 * same memory. Parts are bands already.
 *
 */
export async function cutBlocks(
  ratings: SortedRatings,
  bands: GridBands,
  local: boolean,
  ctx: ExecutionContext,
): Promise<HostPart[][]> {
  const name = dataSetName('grid');
  if (isInParts(ratings)) {
    const blocks: HostPart[][] = [];
    for (const [r, { block }] of heldBlocks(ratings).entries()) {
      blocks.push(
        ...(bands.columns.length === 1
          ? [[partOf(block)]]
          : await cut(
              block,
              { rows: [{ from: 0, to: block.rows }], columns: bands.columns },
              `${name}/${r}`,
              { local, isThere: false },
              ctx,
            )),
      );
    }
    return blocks;
  }
  if (bands.columns.length === 1)
    return bands.rows.map(({ from, to }, partition) => [
      partOf(rowsOfBlock(ratings, from, to, { name, partition, version: 0 })),
    ]);
  return cut(ratings, bands, name, { local, isThere: true }, ctx);
}

export function partOf(block: RatingBlock): HostPart {
  return { ref: block.ref, partition: hostForm(block), ratings: block.ratings };
}

/** `isThere`: the block lies at the CPU device. */
async function cut(
  block: RatingBlock,
  { rows, columns }: GridBands,
  name: string,
  { local, isThere }: { readonly local: boolean; readonly isThere: boolean },
  ctx: ExecutionContext,
): Promise<HostPart[][]> {
  const { place } = hostDevice(ctx.executor).info;
  const columnStarts = [0, ...columns.map(({ to }) => to)];
  const steps = new StepList(contracts);
  const refs = rows.map((range, r) => {
    const row = columns.map((_, c): PartitionRef => ({ name: `${name}/${r}`, partition: c, version: 0 }));
    const outputs = Object.fromEntries(row.map((ref, c) => [`part.${c}`, ref]));
    steps.task('cut-blocks', place, {
      kernel: 'cut-block',
      inputs: { block: block.ref },
      outputs,
      params: { ...range, columnStarts, local },
    });
    for (const ref of row) steps.handOut('cut-blocks', ref, place);
    steps.free('cut-blocks', place, row);
    return row;
  });
  if (!isThere) steps.free('cut-blocks', place, [block.ref]);
  const results = await runSteps(
    steps.steps,
    ctx,
    isThere ? {} : { given: [[block.ref, { ...hostForm(block), reused: true }, place]] },
  );
  return refs.map((row, r) => {
    const partitions = results.partitions(`${name}/${r}`);
    return row.map((ref, c) => ({
      ref,
      partition: partitions[c],
      ratings: partitions[c].columns.indices.length,
    }));
  });
}
