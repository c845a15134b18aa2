import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { spilledBytes } from '../planner/sizes.ts';
import type { IndexedRatings } from './ids/index-ids.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from './rating-block.ts';
import { balancedRanges, offsetsOf } from './row-ranges.ts';
import { type CombinedRatings, requireOnce } from './sorting/combine-duplicates.ts';
import { joinParts } from './sorting/join-parts.ts';
import { leaveRoom } from './sorting/pair-room.ts';
import { RatingParts } from './sorting/rating-parts.ts';
import { lengthsWithout, sortByUser } from './sorting/sort-by-user.ts';
import { columnLengths, transposeBlock } from './sorting/transpose-block.ts';
import {
  ofParts,
  partOfBlocks,
  type RatingsInParts,
  type SortedPart,
  spillParts,
} from './spilled-ratings.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';

export interface RatingBlocks {
  readonly byUser: RatingBlock;
  readonly byItem: RatingBlock;
  /** Ratings beyond the first of their (user, item) pair in the input. */
  readonly duplicates: number;
}

/**
 * Gets the block of a side as soon as it is sorted, or each of its blocks, with the number of columns, and
 * the block that it was transposed from.
 */
export type SeeSorted = (
  block: RatingBlock,
  side: 'users' | 'items',
  columns: number,
  of?: RatingBlock,
) => void;

/**
 * Sorts coded ratings into compressed rows by user (items ascend), and from those by item (users ascend):
 * cuMF's R and Rᵀ. The order inside rows doesn't depend on the input's, duplicates are ordered by value, so
 * permuted input gives the same bits. Releases the chunks. Those that were spilled come back part by part.
 * `sorted` gets the first block while the other is sorted.
 *
 */
export async function buildRatingBlocks(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
  sorted: SeeSorted = () => {},
): Promise<RatingBlocks> {
  using _ = ctx.metrics.begin('sort');
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const blocks = indexed.spilled
    ? await joinedBlocks(indexed, duplicates, ctx, sorted)
    : await sortedBlocks(indexed, duplicates, ctx, sorted);
  phase.end(indexed.rows);
  return blocks;
}

async function sortedBlocks(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
  sorted: SeeSorted,
): Promise<RatingBlocks> {
  const { room } = indexed;
  const { block: byUser, repeated, removed } = await sortWhole(indexed, duplicates, ctx);
  sorted(byUser, 'users', keyCount(indexed.items));
  const byItem = await transposeBlock(
    byUser,
    lengthsWithout(indexed.itemCounts, removed),
    ctx,
    room?.columns,
  );
  if (room) await leaveRoom(room, true, ctx);
  sorted(byItem, 'items', keyCount(indexed.users), byUser);
  return { byUser, byItem, duplicates: repeated.extra };
}

async function joinedBlocks(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
  sorted: SeeSorted,
): Promise<RatingBlocks> {
  const parts = new RatingParts(indexed, duplicates, { spills: true, bothSides: true }, ctx);
  const byUser = await joinParts(parts.byUser(), keyCount(indexed.users), indexed.rows, ctx);
  sorted(byUser, 'users', keyCount(indexed.items));
  const byItem = await joinParts(parts.byItem(), keyCount(indexed.items), byUser.ratings, ctx);
  sorted(byItem, 'items', keyCount(indexed.users));
  return { byUser, byItem, duplicates: parts.duplicates };
}

/** Bytes of a coded rating. */
const CODED_BYTES = 12;

export interface BlocksInParts {
  readonly byUser: RatingsInParts;
  readonly byItem: RatingsInParts;
  readonly duplicates: number;
}

/** The parts of ratings in memory. */
export interface PartCounts {
  readonly users: number;
  readonly items: number;
  /**
   * The ratings of items are cut by the parts of users as well: the blocks R(ij) of a side in vertical parts.
   */
  readonly inBlocks: boolean;
}

/**
 * The same as so many parts in memory, balanced by ratings, where they are more than a block has. `sorted`
 * gets each block while the next ones are sorted.
 */
export async function buildRatingParts(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  { users, items, inBlocks }: PartCounts,
  ctx: ExecutionContext,
  sorted: SeeSorted = () => {},
): Promise<BlocksInParts> {
  using _ = ctx.metrics.begin('sort');
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const cut = (counts: Int32Array, parts: number) =>
    balancedRanges(offsetsOf(counts), parts, undefined, { exactly: true });
  const cuts = { users: cut(indexed.userCounts, users), items: cut(indexed.itemCounts, items) };
  const parts = new RatingParts(
    indexed,
    duplicates,
    { cuts, spills: indexed.spilled ?? false, bothSides: !inBlocks },
    ctx,
  );
  const [byUser, byItem, transposed]: [SortedPart[], SortedPart[], RatingBlock[]] = [[], [], []];
  for await (const { from, block } of parts.byUser()) {
    byUser.push(partOfBlocks(from, [{ firstColumn: 0, block }]));
    sorted(block, 'users', keyCount(indexed.items));
    if (inBlocks)
      transposed.push(
        await transposeBlock(block, await columnLengths(block, keyCount(indexed.items), ctx), ctx),
      );
    if (inBlocks && items === 1) sorted(transposed[transposed.length - 1], 'items', block.rows, block);
    await leaveThreads([block, ...transposed.slice(-1)], ctx);
    phase.progress(byUser.reduce((sum, { ratings }) => sum + ratings, 0));
    // The garbage of a part is of its own size.
    await hostDevice(ctx.executor).trim();
  }
  const name = dataSetName('by-item');
  for (const [j, { from, to }] of (inBlocks ? cuts.items : []).entries()) {
    const rowsOf = (block: RatingBlock, i: number) =>
      items === 1 ? block : rowsOfBlock(block, from, to, { name, partition: j * users + i, version: 0 });
    const blocks = transposed.map((block, i) => ({ firstColumn: byUser[i].from, block: rowsOf(block, i) }));
    byItem.push(partOfBlocks(from, blocks));
    if (items > 1) blocks.forEach(({ block }, i) => sorted(block, 'items', byUser[i].rows));
  }
  if (!inBlocks) {
    for await (const { from, block } of parts.byItem()) {
      byItem.push(partOfBlocks(from, [{ firstColumn: 0, block }]));
      sorted(block, 'items', keyCount(indexed.users));
      await leaveThreads([block], ctx);
    }
  }
  phase.end(indexed.rows);
  return { byUser: ofParts(byUser), byItem: ofParts(byItem), duplicates: parts.duplicates };
}

/**
 * The ratings by user alone, in so many bands of as many ratings each, where they are more than a block has.
 * Releases the chunks.
 */
export async function buildUserBands(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  bands: number,
  ctx: ExecutionContext,
): Promise<{ readonly byUser: RatingsInParts; readonly extra: number }> {
  using _ = ctx.metrics.begin('sort');
  const cuts = {
    users: balancedRanges(offsetsOf(indexed.userCounts), bands, 0, { exactly: true }),
    items: [],
  };
  const parts = new RatingParts(
    indexed,
    duplicates,
    { cuts, spills: indexed.spilled ?? false, bothSides: false },
    ctx,
  );
  const byUser: SortedPart[] = [];
  for await (const { from, block } of parts.byUser()) {
    byUser.push(partOfBlocks(from, [{ firstColumn: 0, block }]));
    await leaveThreads([block], ctx);
    // The garbage of a part is of its own size.
    await hostDevice(ctx.executor).trim();
  }
  return { byUser: ofParts(byUser), extra: parts.duplicates };
}

/** The CPU device forgets blocks, which later steps give it anew. */
async function leaveThreads(blocks: readonly RatingBlock[], ctx: ExecutionContext): Promise<void> {
  const { place } = hostDevice(ctx.executor).info;
  const steps = new StepList({});
  steps.free(
    'rating-blocks',
    place,
    blocks.map(({ ref }) => ref),
  );
  await runSteps(steps.steps, ctx, {
    given: blocks.map((block) => [block.ref, { ...hostForm(block), reused: true }, place]),
  });
}

/**
 * The same as parts in files, of at most `partRatings` ratings each but for long rows, where memory does not
 * hold them.
 */
export async function spillRatingBlocks(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  partRatings: number,
  ctx: ExecutionContext,
): Promise<BlocksInParts> {
  using _ = ctx.metrics.begin('sort');
  await ctx.executor.spilled?.requireRoom(
    spilledBytes(indexed.rows) - (indexed.spilled ? CODED_BYTES * indexed.rows : 0),
  );
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const parts = new RatingParts(indexed, duplicates, { partRatings, spills: true, bothSides: true }, ctx);
  const name = dataSetName('ratings');
  const byUser = await spillParts(parts.byUser(), parts.slices.users, `${name}/by-user`, ctx);
  const byItem = await spillParts(parts.byItem(), parts.slices.items, `${name}/by-item`, ctx);
  phase.end(indexed.rows);
  return { byUser, byItem, duplicates: parts.duplicates };
}

/** The ratings by user alone. Releases the chunks. */
export async function buildUserBlock(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
): Promise<{ readonly byUser: RatingBlock; readonly extra: number }> {
  using _ = ctx.metrics.begin('sort');
  if (indexed.spilled) {
    const parts = new RatingParts(indexed, duplicates, { spills: true, bothSides: false }, ctx);
    return {
      byUser: await joinParts(parts.byUser(), keyCount(indexed.users), indexed.rows, ctx),
      extra: parts.duplicates,
    };
  }
  const { block: byUser, repeated } = await sortWhole(indexed, duplicates, ctx);
  if (indexed.room) await leaveRoom(indexed.room, false, ctx);
  return { byUser, extra: repeated.extra };
}

async function sortWhole(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
): Promise<CombinedRatings> {
  const sorted = await sortByUser(
    indexed,
    duplicates,
    { by: indexed.swapped ? 'items' : 'users', firstRow: 0 },
    ctx,
  );
  if (duplicates === 'error') requireOnce(sorted.repeated, indexed);
  return sorted;
}
