import type { ExecutionContext } from '../../../engine/run/context.ts';
import { blockOf, hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import { balancedRanges } from '../../ratings/row-ranges.ts';
import { cutBlocks, type GridBands, type HostPart } from './cut-blocks.ts';
import type { SgdData } from './data.ts';
import type { SgdSchedule } from '../schedules/schedule.ts';
import { shuffleRatings } from './shuffle-ratings.ts';

/** The ratings in the layouts in which a schedule steps and measures them, in host memory. */
export interface SgdLayoutData {
  /** Bands of the grid, one of each where there is no grid. */
  readonly bands: GridBands;
  /** R by row. */
  readonly whole: HostPart;
  /** By row band and column band; where there is a grid. */
  readonly blocks?: readonly (readonly HostPart[])[];
  /** The whole shuffled, or each block: by row band and column band. */
  readonly lists?: readonly (readonly HostPart[])[];
  readonly tests?: readonly (readonly HostPart[])[];
}

/** Lays the ratings out for the schedule: cut into blocks or shuffled by the CPU device, or unchanged. */
export async function layOut({ block, columnOffsets }: SgdData, test: RatingBlock | undefined, schedule: SgdSchedule, seed: number, ctx: ExecutionContext): Promise<SgdLayoutData> {
  const { kind, rowBands, columnBands, deviceBlocks, precision, tile } = schedule;
  const whole = partOf(block);
  const tests = test === undefined ? undefined : [[partOf(test)]];
  // The number of parts is that of the plan.
  const exactly = deviceBlocks !== undefined;
  const bands = { rows: balancedRanges(block.offsets, rowBands, 0, { exactly }), columns: balancedRanges(columnOffsets, columnBands, 0, { exactly }) };
  if (deviceBlocks) {
    const blocks = await cutBlocks(block, bands, true, ctx);
    const lists: HostPart[][] = [];
    if (deviceBlocks.steps === 'hogwild') {
      for (const row of blocks) {
        const shuffled: HostPart[] = [];
        for (const part of row) shuffled.push(part.ratings === 0 ? part : await shuffleRatings(blockOf(part.ref, part.partition), seed, ctx));
        lists.push(shuffled);
      }
    }
    return { bands, whole, blocks, ...(lists.length > 0 ? { lists } : {}), tests: test && (await cutBlocks(test, bands, true, ctx)) };
  }
  if (kind === 'hogwild' && tile === undefined) return { bands, whole, tests, lists: [[await shuffleRatings(block, seed, ctx)]] };
  if (tile !== undefined || (kind === 'wavefront' && precision !== undefined)) return { bands, whole, tests };
  return { bands, whole, tests, blocks: await cutBlocks(block, bands, false, ctx) };
}

function partOf(block: RatingBlock): HostPart {
  return { ref: block.ref, partition: hostForm(block), ratings: block.ratings };
}
