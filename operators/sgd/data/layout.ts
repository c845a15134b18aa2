import { dataSetName, type PartitionRef, sharedArray, type Partition } from '../../../engine/partition.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import {
  blockOf,
  heldBlocks,
  hostForm,
  oneBlock,
  type RatingBlock,
  type Ratings,
  ratingsOf,
  rowsOfBlock,
} from '../../ratings/ratings.ts';
import { balancedRanges, evenRanges } from '../../ratings/row-ranges.ts';
import { cutColumns, placeColumns } from '../../ratings/sorting/columns-of-block.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { SgdSchedule } from '../schedules/schedule.ts';
import type { SgdData } from './data.ts';

/** The ratings in host memory, in the layouts that the schedule's steps and measurements read. */
export interface SgdLayoutData {
  /** The bands of rows and columns of the grid; without a grid, one of each. */
  readonly bands: GridBands;
  /** R by row: whole, or by band. */
  readonly ratings: readonly HostPart[];
  /** Blocks by row band and column band, if there is a grid. */
  readonly blocks?: readonly (readonly HostPart[])[];
  /** All ratings shuffled as one list, or each block shuffled, by row band and column band. */
  readonly lists?: readonly (readonly HostPart[])[];
  readonly tests?: readonly (readonly HostPart[])[];
}

export interface SgdLayoutAsked {
  readonly test: RatingBlock | undefined;
  readonly schedule: SgdSchedule;
  readonly seed: number;
}

/**
 * Brings the ratings into the layout of the schedule: the CPU cuts them into blocks, shuffles them, or leaves
 * them unchanged.
 */
export async function layOut(
  data: SgdData,
  { test, schedule, seed }: SgdLayoutAsked,
  ctx: ExecutionContext,
): Promise<SgdLayoutData> {
  const { ratings, columnOffsets } = data;
  const { kind, deviceBlocks, inBands, tile } = schedule;
  const bands = bandsOf(data, schedule);
  const laid = { bands, ratings: heldBlocks(ratings).map(({ block }) => partOf(block)) };
  const shuffle = (block: RatingBlock) => shuffleRatings(block, seed, ctx);
  if (deviceBlocks) {
    const blocks = await cutBlocks(ratings, bands, true, ctx);
    const lists = deviceBlocks.steps === 'hogwild' ? await shuffledBlocks(blocks, shuffle) : undefined;
    const tests = test && (await cutBlocks(ratingsOf(test), bands, true, ctx));
    return { ...laid, blocks, lists, tests };
  }
  const wide = { rows: bands.rows, columns: [{ from: 0, to: columnOffsets.length - 1 }] };
  const cutTest = (block: RatingBlock) => cutBlocks(ratingsOf(block), wide, false, ctx);
  const tests = test && (inBands ? await cutTest(test) : [[partOf(test)]]);
  if (kind === 'hogwild' && tile === undefined)
    return { ...laid, tests, lists: [[await shuffle(oneBlock(ratings))]] };
  if (steppedByRow(schedule)) return { ...laid, tests };
  return { ...laid, tests, blocks: await cutBlocks(ratings, bands, false, ctx) };
}

/** The bands of the grid. With blocks on devices their number is exactly the planned one. */
function bandsOf(
  { ratings, columnOffsets }: SgdData,
  { rowBands, columnBands, deviceBlocks }: SgdSchedule,
): GridBands {
  const exactly = deviceBlocks !== undefined;
  const rows =
    ratings.parts.length > 1
      ? ratings.parts.map((part) => ({ from: part.from, to: part.from + part.rows }))
      : balancedRanges(ratings.parts[0].offsets, rowBands, 0, { exactly });
  return { rows, columns: balancedRanges(columnOffsets, columnBands, 0, { exactly }) };
}

/**
 * True if a GPU makes the layout itself in the first epoch: it divides the ratings among tiles, or sorts them
 * into blocks.
 */
function steppedByRow({ kind, precision, tile }: SgdSchedule): boolean {
  return tile !== undefined || (kind === 'wavefront' && precision !== undefined);
}

/** Shuffles the blocks, one after the other. */
async function shuffledBlocks(
  blocks: readonly (readonly HostPart[])[],
  shuffle: (block: RatingBlock) => Promise<HostPart>,
): Promise<HostPart[][]> {
  const lists: HostPart[][] = [];
  for (const row of blocks) {
    const list: HostPart[] = [];
    for (const part of row)
      list.push(part.ratings === 0 ? part : await shuffle(blockOf(part.ref, part.partition)));
    lists.push(list);
  }
  return lists;
}

const STAGE = 'shuffle-ratings';

/** Number of ratings of a bucket. At 12 bytes each they fit into a core's own cache. */
const BUCKET_RATINGS = 1 << 16;
const LEAST_BUCKETS = 16;

/**
 * Shuffles all ratings of a block. The random order depends only on the block and the seed. Returns them in
 * the layout rating-list, in host memory.
 */
async function shuffleRatings(block: RatingBlock, seed: number, ctx: ExecutionContext): Promise<HostPart> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const { ratings } = block;
  const list: PartitionRef = { name: dataSetName('shuffled'), partition: 0, version: 0 };
  const columns = {
    rows: sharedArray(Uint32Array, ratings),
    columns: sharedArray(Uint32Array, ratings),
    values: sharedArray(Float32Array, ratings),
  };
  const partition = { layout: 'rating-list', rows: ratings, columns };
  const buckets = Math.max(LEAST_BUCKETS, Math.ceil(ratings / BUCKET_RATINGS));
  const params = { buckets, seed };
  const steps = new StepList(contracts);
  steps.move(STAGE, block.ref, HOST, place);
  steps.move(STAGE, list, HOST, place);
  const slices = (count: number) => evenRanges(count, 4 * parallelism).map(({ from, to }) => ({ from, to }));
  steps.task(
    STAGE,
    place,
    { kernel: 'deal-ratings', inputs: { block: block.ref }, outputs: { list }, params },
    { slices: slices(Math.ceil(ratings / buckets)) },
  );
  steps.task(
    STAGE,
    place,
    { kernel: 'shuffle-ratings', inputs: {}, outputs: { list }, params },
    { slices: slices(buckets) },
  );
  steps.free(STAGE, place, [list]);
  steps.free(STAGE, HOST, [list]);
  await runSteps(steps.steps, ctx, {
    given: [
      [block.ref, hostForm(block)],
      [list, partition],
    ],
  });
  return { ref: list, partition, ratings };
}

/** A partition in host memory, and its name. */
export interface HostPart {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readonly ratings: number;
}

/** Bands of rows and of columns into which R is cut. */
interface GridBands {
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

function partOf(block: RatingBlock): HostPart {
  return { ref: block.ref, partition: hostForm(block), ratings: block.ratings };
}
