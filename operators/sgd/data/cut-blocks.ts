import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { heldBlocks, type Ratings } from '../../ratings/ratings.ts';
import { cutColumns, placeColumns } from '../../ratings/sorting/columns-of-block.ts';

/** A partition in host memory, and its name. */
export interface HostPart {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readonly ratings: number;
}

/** Bands of rows and of columns into which R is cut. */
export interface GridBands {
  readonly rows: readonly RowRange[];
  readonly columns: readonly RowRange[];
}

/**
 * Cuts sorted ratings in memory into blocks, one for each pair of a band of rows and a band of columns.
 * `local`: a block numbers its columns from the first column of its band; otherwise columns keep their
 * numbers. With a single band of columns, blocks are views of the ratings and not copies. If the ratings are
 * in parts, the parts are the bands of rows.
 */
export async function cutBlocks(
  ratings: Ratings,
  bands: GridBands,
  local: boolean,
  ctx: ExecutionContext,
): Promise<HostPart[][]> {
  const name = dataSetName('grid');
  const held = heldBlocks(ratings);
  const cutBand = async ({ from, to }: RowRange, r: number): Promise<HostPart[]> => {
    const rows =
      held.length > 1
        ? held[r].block
        : rowsOfBlock(held[0].block, from, to, { name, partition: r, version: 0 });
    if (bands.columns.length === 1) return [partOf(rows)];
    const cut = cutColumns(rows, bands.columns, (partition) => ({
      name: `${name}/${r}`,
      partition,
      version: 0,
    }));
    await placeColumns(cut, { stage: 'cut-blocks', local }, ctx);
    return cut.blocks.map(partOf);
  };
  const blocks: HostPart[][] = [];
  for (const [r, range] of bands.rows.entries()) blocks.push(await cutBand(range, r));
  return blocks;
}

export function partOf(block: RatingBlock): HostPart {
  return { ref: block.ref, partition: hostForm(block), ratings: block.ratings };
}
