import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { spilledBytes } from '../planner/sizes.ts';
import type { IndexedRatings } from './index-ids.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import type { CombinedRatings } from './sorting/combine-duplicates.ts';
import { joinParts } from './sorting/join-parts.ts';
import { RatingParts } from './sorting/rating-parts.ts';
import { lengthsWithout, sortByUser } from './sorting/sort-by-user.ts';
import { sortIntoRows } from './sorting/sort-into-rows.ts';
import { spillParts, type SpilledRatings } from './spilled-ratings.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';

export interface RatingBlocks {
  readonly byUser: RatingBlock;
  readonly byItem: RatingBlock;
  /** Ratings beyond the first of their (user, item) pair in the input. */
  readonly duplicates: number;
}

/**
 * Sorts coded ratings into compressed rows by user (items ascend), and from those by item (users ascend): cuMF's R and Rᵀ.
 * The order inside rows doesn't depend on the input's, duplicates are ordered by value, so permuted input gives the same
 * bits. Releases the chunks. Those that were spilled come back part by part. `sorted` gets each block as soon as it is there, the first one while the other is sorted.
 */
export async function buildRatingBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext, sorted: (block: RatingBlock) => void = () => {}): Promise<RatingBlocks> {
  using _ = ctx.metrics.begin('sort');
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const blocks = indexed.spilled ? await joinedBlocks(indexed, duplicates, ctx, sorted) : await sortedBlocks(indexed, duplicates, ctx, sorted);
  phase.end(indexed.rows);
  return blocks;
}

async function sortedBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext, sorted: (block: RatingBlock) => void): Promise<RatingBlocks> {
  const { block: byUser, extra, removed } = await sortWhole(indexed, duplicates, ctx);
  sorted(byUser);
  const byItem = await transposeBlock(byUser, lengthsWithout(indexed.itemCounts, removed), ctx);
  sorted(byItem);
  return { byUser, byItem, duplicates: extra };
}

async function joinedBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext, sorted: (block: RatingBlock) => void): Promise<RatingBlocks> {
  const parts = new RatingParts(indexed, duplicates, { spills: true, bothSides: true }, ctx);
  const byUser = await joinParts(parts.byUser(), keyCount(indexed.users), indexed.rows, ctx);
  sorted(byUser);
  const byItem = await joinParts(parts.byItem(), keyCount(indexed.items), byUser.ratings, ctx);
  sorted(byItem);
  return { byUser, byItem, duplicates: parts.duplicates };
}

/** Bytes of a coded rating. */
const CODED_BYTES = 12;

export interface SpilledBlocks {
  readonly byUser: SpilledRatings;
  readonly byItem: SpilledRatings;
  readonly duplicates: number;
}

/** The same as parts in files, of at most `partRatings` ratings each but for long rows, where memory does not hold them. */
export async function spillRatingBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, partRatings: number, ctx: ExecutionContext): Promise<SpilledBlocks> {
  using _ = ctx.metrics.begin('sort');
  await ctx.spill?.requireRoom(spilledBytes(indexed.rows) - (indexed.spilled ? CODED_BYTES * indexed.rows : 0));
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const parts = new RatingParts(indexed, duplicates, { partRatings, spills: true, bothSides: true }, ctx);
  const name = dataSetName('ratings');
  const byUser = await spillParts(parts.byUser(), parts.slices.users, `${name}/by-user`, ctx);
  const byItem = await spillParts(parts.byItem(), parts.slices.items, `${name}/by-item`, ctx);
  phase.end(indexed.rows);
  return { byUser, byItem, duplicates: parts.duplicates };
}

/** The ratings by user alone. Releases the chunks. */
export async function buildUserBlock(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext): Promise<{ readonly byUser: RatingBlock; readonly extra: number }> {
  using _ = ctx.metrics.begin('sort');
  if (indexed.spilled) {
    const parts = new RatingParts(indexed, duplicates, { spills: true, bothSides: false }, ctx);
    return { byUser: await joinParts(parts.byUser(), keyCount(indexed.users), indexed.rows, ctx), extra: parts.duplicates };
  }
  const { block: byUser, extra } = await sortWhole(indexed, duplicates, ctx);
  return { byUser, extra };
}

function sortWhole(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext): Promise<CombinedRatings> {
  return sortByUser(indexed, duplicates, { by: indexed.swapped ? 'items' : 'users', firstRow: 0 }, ctx);
}

/** `lengths`: ratings of each column of the block. */
async function transposeBlock(block: RatingBlock, lengths: Int32Array, ctx: ExecutionContext): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, 4 * hostDevice(ctx.executor).info.parallelism);
  const ref: PartitionRef = { ...block.ref, name: `${block.ref.name}/transposed` };
  const sorted = await sortIntoRows(groups, { lengths, columns: block.rows, order: 'kept' }, ref, ctx, {
    count: (ranges, counts, { bands, bandCount, rowBits }) => ({
      kernel: 'count-columns',
      inputs: { block: block.ref, bands },
      outputs: { counts },
      params: { starts: [...ranges.map(({ from }) => from), ranges[ranges.length - 1].to], bands: bandCount, rowBits },
    }),
    scatter: (range, cursors, { bands, block: transposed, rowBits, columnBits }) => ({ kernel: 'scatter-columns', inputs: { block: block.ref, bands, cursors }, outputs: { transposed }, params: { ...range, rowBits, columnBits } }),
  });
  return sorted.block;
}
