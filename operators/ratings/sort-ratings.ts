import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, partitionRef } from '../../engine/partition.ts';
import { type Phase, startPhase } from '../../engine/phase.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { spilledBytes } from '../planner/sizes.ts';
import { columnSums } from './pass-over.ts';
import type { IndexedRatings } from './ids/index-ids.ts';
import { joinParts, spillParts } from './parts-in-files.ts';
import { hostForm, type RatingBlock, rowsOfBlock } from './rating-block.ts';
import {
  type HeldBlock,
  oneBlock,
  ofParts,
  partOfBlock,
  partOfBlocks,
  type RatingPart,
  type RatingSides,
  ratingsOf,
} from './ratings.ts';
import { balancedRanges, offsetsOf } from './row-ranges.ts';
import { lengthsWithout, requireOnce, sortRows } from './sorting/sort-rows.ts';
import { leaveRoom } from './sorting/pair-room.ts';
import { RatingParts } from './sorting/rating-parts.ts';
import { transposeBlock } from './sorting/sort-into-rows.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';

export interface SortedRatings extends RatingSides {
  /** Number of ratings that repeat the (user, item) pair of an earlier one. */
  readonly duplicates: number;
}

/** Number of parts by user and by item, for ratings in memory. Parts have about equal numbers of ratings. */
export interface PartCounts {
  readonly users: number;
  readonly items: number;
  /**
   * True if each part by item consists of several blocks R(ij): the transpose of each part by user is cut
   * into the parts by item.
   */
  readonly inBlocks: boolean;
}

export type FileParts =
  | { readonly partRatings: number; readonly fileParts?: undefined }
  | { readonly fileParts: Pick<PartCounts, 'users' | 'items'>; readonly partRatings?: undefined };

export interface SortOptions {
  readonly duplicates: DuplicatePolicy;
  /** `users`: no parts by item. Default: both. */
  readonly sides?: 'users' | 'both';
  /**
   * Default: one part with one block in memory. `fileParts`: numbers of parts in files, by user and by item,
   * with about equal numbers of ratings. `partRatings`: parts in files, each with at most this number
   * of ratings, unless a single row has more.
   */
  readonly cut?: PartCounts | FileParts | undefined;
  /** Called with each block in memory as soon as it is sorted. */
  readonly sorted?: OnSorted;
}

/**
 * Called with a sorted block, its number of columns, and, if it is a transpose, the block it was made from.
 */
export type OnSorted = (
  block: RatingBlock,
  side: 'users' | 'items',
  columns: number,
  of?: RatingBlock,
) => void;

type Sorting = Required<Pick<SortOptions, 'duplicates' | 'sides' | 'sorted'>>;

/** Bytes of a coded rating. */
const CODED_BYTES = 12;

/**
 * Sorts numbered ratings into compressed sparse rows by user (items ascend), and from these by item (users
 * ascend): cuMF's R and Rᵀ. The order inside rows does not depend on the order of the input, and duplicates
 * are ordered by value, so permuted input gives the same bits. Frees the chunks; chunks in files are read
 * part by part.
 */
export async function sortRatings(
  indexed: IndexedRatings,
  { duplicates, sides = 'both', cut, sorted = () => {} }: SortOptions,
  ctx: ExecutionContext,
): Promise<SortedRatings> {
  using _ = ctx.metrics.begin('sort');
  const { rows, spilled } = indexed;
  const [files, counts] = cut && 'inBlocks' in cut ? [undefined, cut] : [cut, undefined];
  if (files) await ctx.executor.spilled?.requireRoom(spilledBytes(rows) - (spilled ? CODED_BYTES * rows : 0));
  const phase = sides === 'both' ? startPhase(ctx.events, 'sort', 'ratings', rows) : undefined;
  const sorting = { duplicates, sides, sorted };
  const sort = () => {
    if (counts) return inParts(indexed, sorting, counts, phase, ctx);
    if (files || spilled) return throughFiles(indexed, sorting, files, ctx);
    return inOneBlock(indexed, sorting, ctx);
  };
  const made = await sort();
  phase?.end(rows);
  return made;
}

/** Sorts the ratings by user only, as one block. */
export async function sortByUser(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  return oneBlock((await sortRatings(indexed, { duplicates, sides: 'users' }, ctx)).byUser);
}

/**
 * Sorts ratings that do not fit into memory, part by part. The parts stay in files, or are joined into one
 * block if `files` is not given.
 */
async function throughFiles(
  indexed: IndexedRatings,
  { duplicates, sides, sorted }: Sorting,
  files: FileParts | undefined,
  ctx: ExecutionContext,
): Promise<SortedRatings> {
  const bothSides = sides === 'both';
  const { partRatings, fileParts } = files ?? {};
  const options = fileParts ? { cuts: cutsOf(indexed, fileParts, sides) } : { partRatings };
  const parts = new RatingParts(indexed, duplicates, { ...options, spills: true, bothSides }, ctx);
  const name = dataSetName('ratings');
  const counts = { users: keyCount(indexed.users), items: keyCount(indexed.items) };
  const take = async (side: 'users' | 'items', made: AsyncIterable<HeldBlock>, most: number) => {
    if (files !== undefined)
      return spillParts(
        made,
        fileParts ? undefined : parts.slices[side],
        `${name}/by-${side.slice(0, -1)}`,
        ctx,
      );
    const block = await joinParts(made, counts[side], most, ctx);
    sorted(block, side, counts[side === 'users' ? 'items' : 'users']);
    return ratingsOf(block);
  };
  const byUser = await take('users', parts.byUser(), indexed.rows);
  const byItem = bothSides ? await take('items', parts.byItem(), byUser.ratings) : ofParts([]);
  return { byUser, byItem, duplicates: parts.duplicates };
}

async function inOneBlock(
  indexed: IndexedRatings,
  { duplicates, sides, sorted }: Sorting,
  ctx: ExecutionContext,
): Promise<SortedRatings> {
  const { users, items, itemCounts, room, swapped } = indexed;
  const by = swapped ? 'items' : 'users';
  const { block, repeated, removed } = await sortRows(indexed, duplicates, { by, firstRow: 0 }, ctx);
  if (duplicates === 'error') requireOnce(repeated, indexed);
  sorted(block, 'users', keyCount(items));
  const transposed =
    sides === 'both'
      ? await transposeBlock(block, lengthsWithout(itemCounts, removed), ctx, room?.columns)
      : undefined;
  if (room) await leaveRoom(room, transposed !== undefined, ctx);
  if (transposed) sorted(transposed, 'items', keyCount(users), block);
  const byItem = transposed ? ratingsOf(transposed) : ofParts([]);
  return { byUser: ratingsOf(block), byItem, duplicates: repeated.extra };
}

async function inParts(
  indexed: IndexedRatings,
  { duplicates, sides, sorted }: Sorting,
  { users, items, inBlocks }: PartCounts,
  phase: Phase | undefined,
  ctx: ExecutionContext,
): Promise<SortedRatings> {
  const n = keyCount(indexed.items);
  const cuts = cutsOf(indexed, { users, items }, sides);
  const [spills, bothSides] = [indexed.spilled ?? false, sides === 'both' && !inBlocks];
  const parts = new RatingParts(indexed, duplicates, { cuts, spills, bothSides }, ctx);
  const [byUser, byItem, transposed]: [RatingPart[], RatingPart[], RatingBlock[]] = [[], [], []];
  for await (const { from, block } of parts.byUser()) {
    byUser.push(partOfBlock(from, block));
    sorted(block, 'users', n);
    if (inBlocks) {
      const { counts } = await columnSums(ratingsOf(block), n, undefined, ctx);
      transposed.push(await transposeBlock(block, counts, ctx));
    }
    if (inBlocks && items === 1) sorted(transposed[transposed.length - 1], 'items', block.rows, block);
    await leaveThreads([block, ...transposed.slice(-1)], ctx);
    phase?.progress(byUser.reduce((sum, { ratings }) => sum + ratings, 0));
    // Sorting a part leaves garbage of about the part's size, so memory is collected after each.
    await hostDevice(ctx.executor).trim();
  }
  if (inBlocks) byItem.push(...blocksInParts(transposed, byUser, cuts.items, sorted));
  else if (bothSides) {
    for await (const { from, block } of parts.byItem()) {
      byItem.push(partOfBlock(from, block));
      sorted(block, 'items', keyCount(indexed.users));
      await leaveThreads([block], ctx);
    }
  }
  return { byUser: ofParts(byUser), byItem: ofParts(byItem), duplicates: parts.duplicates };
}

/** The rows of each part, with about equal numbers of ratings. */
function cutsOf(
  { userCounts, itemCounts }: IndexedRatings,
  { users, items }: Pick<PartCounts, 'users' | 'items'>,
  sides: Sorting['sides'],
): Readonly<Record<'users' | 'items', RowRange[]>> {
  const cutOf = (counts: Int32Array, parts: number, rowCost?: number) =>
    balancedRanges(offsetsOf(counts), parts, rowCost, { exactly: true });
  return sides === 'both'
    ? { users: cutOf(userCounts, users), items: cutOf(itemCounts, items) }
    : { users: cutOf(userCounts, users, 0), items: [] };
}

/** Cuts the rows of the transposed parts by user into the parts by item. */
function blocksInParts(
  transposed: readonly RatingBlock[],
  byUser: readonly RatingPart[],
  ranges: readonly RowRange[],
  sorted: OnSorted,
): RatingPart[] {
  const name = dataSetName('by-item');
  return ranges.map(({ from, to }, j) => {
    const blocks = transposed.map((block, i) => {
      if (ranges.length === 1) return { firstColumn: byUser[i].from, block };
      const ref = partitionRef(name, j * transposed.length + i);
      const own = rowsOfBlock(block, from, to, ref);
      sorted(own, 'items', byUser[i].rows);
      return { firstColumn: byUser[i].from, block: own };
    });
    return partOfBlocks(from, blocks);
  });
}

/** Frees blocks on the CPU device; a later step that needs one sends it again. */
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
