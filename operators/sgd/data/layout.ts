import type { ExecutionContext } from '../../../engine/run/context.ts';
import { blockOf, type RatingBlock } from '../../ratings/rating-block.ts';
import { balancedRanges } from '../../ratings/row-ranges.ts';
import { heldBlocks, oneBlock, ratingsOf } from '../../ratings/ratings.ts';
import { cutBlocks, type GridBands, type HostPart, partOf } from './cut-blocks.ts';
import type { SgdData } from './data.ts';
import type { SgdSchedule } from '../schedules/schedule.ts';
import { shuffleRatings } from './shuffle-ratings.ts';

/** The ratings in the layouts in which a schedule steps and measures them, in host memory. */
export interface SgdLayoutData {
  /** Bands of the grid, one of each where there is no grid. */
  readonly bands: GridBands;
  /** R by row: whole, or band by band. */
  readonly ratings: readonly HostPart[];
  /** By row band and column band; where there is a grid. */
  readonly blocks?: readonly (readonly HostPart[])[];
  /** The whole shuffled, or each block: by row band and column band. */
  readonly lists?: readonly (readonly HostPart[])[];
  readonly tests?: readonly (readonly HostPart[])[];
}

/** Lays the ratings out for the schedule: cut into blocks or shuffled by the CPU device, or unchanged. */
export async function layOut(
  { ratings, columnOffsets }: SgdData,
  test: RatingBlock | undefined,
  schedule: SgdSchedule,
  seed: number,
  ctx: ExecutionContext,
): Promise<SgdLayoutData> {
  const { kind, rowBands, columnBands, deviceBlocks, inBands, precision, tile } = schedule;
  const parts = heldBlocks(ratings).map(({ block }) => partOf(block));
  // The number of parts is that of the plan.
  const exactly = deviceBlocks !== undefined;
  const rows =
    ratings.parts.length > 1
      ? ratings.parts.map((part) => ({ from: part.from, to: part.from + part.rows }))
      : balancedRanges(ratings.parts[0].offsets, rowBands, 0, { exactly });
  const bands = { rows, columns: balancedRanges(columnOffsets, columnBands, 0, { exactly }) };
  if (deviceBlocks) {
    const blocks = await cutBlocks(ratings, bands, true, ctx);
    const lists: HostPart[][] = [];
    if (deviceBlocks.steps === 'hogwild') {
      for (const row of blocks) {
        const shuffled: HostPart[] = [];
        for (const part of row)
          shuffled.push(
            part.ratings === 0 ? part : await shuffleRatings(blockOf(part.ref, part.partition), seed, ctx),
          );
        lists.push(shuffled);
      }
    }
    return {
      bands,
      ratings: parts,
      blocks,
      ...(lists.length > 0 ? { lists } : {}),
      tests: test && (await cutBlocks(ratingsOf(test), bands, true, ctx)),
    };
  }
  if (inBands) {
    const columns = [{ from: 0, to: columnOffsets.length - 1 }];
    return {
      bands,
      ratings: parts,
      tests: test && (await cutBlocks(ratingsOf(test), { rows, columns }, false, ctx)),
      blocks: await cutBlocks(ratings, bands, false, ctx),
    };
  }
  const tests = test === undefined ? undefined : [[partOf(test)]];
  if (kind === 'hogwild' && tile === undefined)
    return {
      bands,
      ratings: parts,
      tests,
      lists: [[await shuffleRatings(oneBlock(ratings), seed, ctx)]],
    };
  if (tile !== undefined || (kind === 'wavefront' && precision !== undefined))
    return { bands, ratings: parts, tests };
  return { bands, ratings: parts, tests, blocks: await cutBlocks(ratings, bands, false, ctx) };
}
