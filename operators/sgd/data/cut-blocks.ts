import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { heldBlocks, type Ratings } from '../../ratings/ratings.ts';
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
 * Cuts sorted ratings in memory into blocks by row band and column band; every rating is in exactly one
 * block. `local`: each block counts its columns from the first of its band; else they keep their numbers.
 * Where the columns are one band blocks are the rows themselves, over the same memory. A band has rows of
 * one part, and of several parts each is a band.
 */
export async function cutBlocks(
  ratings: Ratings,
  bands: GridBands,
  local: boolean,
  ctx: ExecutionContext,
): Promise<HostPart[][]> {
  const name = dataSetName('grid');
  const blocks: HostPart[][] = [];
  const held = heldBlocks(ratings);
  for (const [p, { from, block }] of held.entries()) {
    const rows = bands.rows
      .filter((band) => band.from >= from && band.to <= from + block.rows)
      .map((band) => ({ from: band.from - from, to: band.to - from }));
    if (bands.columns.length > 1)
      blocks.push(
        ...(await cut(
          block,
          { rows, columns: bands.columns },
          held.length === 1 ? name : `${name}/${p}`,
          local,
          ctx,
        )),
      );
    else if (held.length > 1) blocks.push([partOf(block)]);
    else
      blocks.push(
        ...rows.map((band, partition) => [
          partOf(rowsOfBlock(block, band.from, band.to, { name, partition, version: 0 })),
        ]),
      );
  }
  return blocks;
}

export function partOf(block: RatingBlock): HostPart {
  return { ref: block.ref, partition: hostForm(block), ratings: block.ratings };
}

async function cut(
  block: RatingBlock,
  { rows, columns }: GridBands,
  name: string,
  local: boolean,
  ctx: ExecutionContext,
): Promise<HostPart[][]> {
  const { place } = hostDevice(ctx.executor).info;
  const columnStarts = [0, ...columns.map(({ to }) => to)];
  const whole: PartitionRef = { name: `${name}/whole`, partition: 0, version: 0 };
  const steps = new StepList(contracts);
  const refs = rows.map((range, r) => {
    const row = columns.map((_, c): PartitionRef => ({ name: `${name}/${r}`, partition: c, version: 0 }));
    const outputs = Object.fromEntries(row.map((ref, c) => [`part.${c}`, ref]));
    steps.task('cut-blocks', place, {
      kernel: 'cut-block',
      inputs: { block: whole },
      outputs,
      params: { ...range, columnStarts, local },
    });
    for (const ref of row) steps.handOut('cut-blocks', ref, place);
    steps.free('cut-blocks', place, row);
    return row;
  });
  steps.free('cut-blocks', place, [whole]);
  const results = await runSteps(steps.steps, ctx, {
    given: [[whole, { ...hostForm(block), reused: true }, place]],
  });
  return refs.map((row, r) => {
    const partitions = results.partitions(`${name}/${r}`);
    return row.map((ref, c) => ({
      ref,
      partition: partitions[c],
      ratings: partitions[c].columns.indices.length,
    }));
  });
}
