import { type Phase, startPhase } from '../../engine/events.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { dataSetName, partitionRef, type Partition, sharedArray } from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { freeAt, type Given, giveTo, runSteps } from '../../engine/run/run-steps.ts';
import type { Task } from '../../engine/task.ts';
import { spilledBytes } from '../planner/sizes.ts';
import { type ReplacingTask, replacingSteps } from '../tasks/run-tasks.ts';
import type { DuplicatePolicy, ValuesOf } from '../tasks/tasks.ts';
import { type IndexedRatings, leaveRoom } from './ids/number-ids.ts';
import { columnSums, joinParts, spillParts } from './parts-in-files.ts';
import {
  hostForm,
  type RatingBlock,
  rowsOfBlock,
  type HeldBlock,
  oneBlock,
  ofParts,
  partOfBlock,
  partOfBlocks,
  type RatingPart,
  type RatingSides,
  ratingsOf,
} from './ratings.ts';
import type { CodedChunk } from './reading/rating-chunk.ts';
import { balancedRanges, offsetsOf, taskCount } from './row-ranges.ts';
import {
  lengthsWithout,
  requireOnce,
  sortRows,
  type RepeatedPairs,
  transposeBlock,
  GROUP_RATINGS,
  inputsOf,
  partitionsOf,
  sortChunks,
} from './sorting/sort-rows.ts';

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
  const parts = ratingParts(indexed, duplicates, { ...options, spills: true, bothSides }, ctx);
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
  const parts = ratingParts(indexed, duplicates, { cuts, spills, bothSides }, ctx);
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
  const garbage = blocks.map((block) => [block.ref, { ...hostForm(block), reused: true }] as const);
  await giveTo(ctx, place, garbage);
  await freeAt(
    ctx,
    'rating-blocks',
    place,
    blocks.map(({ ref }) => ref),
  );
}

const STAGE = 'rating-parts';

/** Default number of ratings in a part. */
const PART_RATINGS = 1 << 22;

/**
 * Without files, a task cuts enough chunks together that each part gets a piece of about a quarter of a
 * chunk, a megabyte. Such a piece has memory pages of its own, which the system gets back when the part is
 * sorted; the process's allocator would keep the memory of smaller pieces (see pagedArray).
 */
const PARTS_OF_A_CHUNK = 4;

/** Most chunks that one task cuts together; a thread has all of them in memory. */
const MOST_TOGETHER = 16;

interface PartOptions {
  /**
   * Most ratings of a part. A part consists of whole slices (ranges of rows for one task); a larger slice is
   * a part of its own.
   */
  readonly partRatings?: number | undefined;
  /** The rows of each part, instead of a limit of ratings. */
  readonly cuts?: Readonly<Record<'users' | 'items', readonly RowRange[]>>;
  /** Keeps all but the current part in files of the run's spill folder. */
  readonly spills: boolean;
  /** If false, `byItem` is not called. */
  readonly bothSides: boolean;
}

/** Ratings in parts of adjacent rows, in row order: first by user, then by item. */
export interface RatingParts {
  /**
   * Ranges of rows for the tasks of a pass over all ratings, in order; a part ends where a slice ends. They
   * equal the slices of one block of all ratings, unless ratings are removed or parts are smaller than
   * slices.
   */
  readonly slices: Readonly<Record<'users' | 'items', readonly RowRange[]>>;
  /** Number of ratings that repeat an earlier pair, in the parts so far. */
  readonly duplicates: number;
  /** May be called once. */
  byUser(): AsyncGenerator<HeldBlock, void>;
  /** May be called once, after `byUser`. */
  byItem(): AsyncGenerator<HeldBlock, void>;
}

/**
 * Sorts numbered ratings into parts, and takes ownership of their chunks. If `spills`, only the current part and
 * the tasks' data are in memory, so there may be more ratings than memory can hold. The consumer owns each part:
 * before it requests the next one, it may free it (`block.ref` at the CPU's place), write it to a file or send it
 * on. A part has the same bits as these rows in one block of all ratings.
 */
export function ratingParts(
  indexed: IndexedRatings,
  policy: DuplicatePolicy,
  { partRatings: most = PART_RATINGS, cuts, spills, bothSides }: PartOptions,
  ctx: ExecutionContext,
): RatingParts {
  const { rows: ratings, users, userCounts, itemCounts, room } = indexed;
  const slicesOf = (counts: Int32Array) =>
    balancedRanges(offsetsOf(counts), Math.max(taskCount(ratings), Math.ceil(ratings / most)));
  const slices = cuts ?? { users: slicesOf(userCounts), items: bothSides ? slicesOf(itemCounts) : [] };
  const userRanges = cuts?.users ?? runsOfSlices(slices.users, userCounts, most);
  const itemRanges = bothSides ? (cuts?.items ?? runsOfSlices(slices.items, itemCounts, most)) : [];
  /** Chunks of each part by item. */
  const ofItems = itemRanges.map((): CodedChunk[] => []);
  const removed: Uint32Array[] = [];
  let repeated: RepeatedPairs = { extra: 0, row: -1, column: -1 };
  return {
    slices,
    get duplicates() {
      return repeated.extra;
    },
    async *byUser() {
      const chunks = await splitChunks(indexed, userRanges, spills, ctx);
      if (room) await leaveRoom(room, false, ctx);
      for (const [p, { from, to }] of userRanges.entries()) {
        const rows = chunks[p].reduce((sum, chunk) => sum + chunk.rows, 0);
        const own = { ...indexed, rows, userCounts: userCounts.subarray(from, to), chunks: chunks[p] };
        const sorted = await sortRows(own, policy, { by: 'users', firstRow: from }, ctx);
        const { block } = sorted;
        const first = repeated.extra > 0 ? repeated : sorted.repeated;
        repeated = { ...first, extra: repeated.extra + sorted.repeated.extra };
        if (policy === 'error' && repeated.extra > 0) {
          // The error needs only the number of repeated pairs in the remaining parts, so the blocks are freed.
          await freeAt(ctx, STAGE, hostDevice(ctx.executor).info.place, [block.ref]);
          continue;
        }
        removed.push(...sorted.removed);
        if (bothSides) {
          const pieces = await splitBlock(block, from, itemRanges, itemCounts.length, spills, ctx);
          pieces.forEach((piece, part) => ofItems[part].push(...piece));
        }
        yield { from, firstColumn: 0, block };
      }
      if (policy === 'error') requireOnce(repeated, indexed);
    },
    async *byItem() {
      const lengths = lengthsWithout(itemCounts, removed);
      const name = dataSetName('items');
      for (const [p, { from, to }] of itemRanges.entries()) {
        const own = lengths.subarray(from, to);
        const shape = { lengths: own, columns: keyCount(users), order: 'kept' } as const;
        const ref = partitionRef(name, p);
        const { block } = await sortChunks(ofItems[p], 'items', shape, undefined, ref, ctx);
        yield { from, firstColumn: 0, block };
      }
    },
  };
}

/** Runs of slices with at most `most` ratings; a larger slice is a part of its own. */
function runsOfSlices(slices: readonly RowRange[], counts: Int32Array, most: number): RowRange[] {
  const ranges: { from: number; to: number }[] = [];
  let ratings = 0;
  for (const { from, to } of slices) {
    let own = 0;
    for (let row = from; row < to; row++) own += counts[row];
    const last = ranges.at(-1);
    if (last !== undefined && ratings + own <= most) {
      last.to = to;
      ratings += own;
    } else {
      ranges.push({ from, to });
      ratings = own;
    }
  }
  return ranges;
}

/** Divides the input chunks among the parts by user. Returns the chunks of each part. */
function splitChunks(
  { chunks, userCounts, swapped }: IndexedRatings,
  ranges: readonly RowRange[],
  spills: boolean,
  ctx: ExecutionContext,
): Promise<CodedChunk[][]> {
  const by = swapped ? 'items' : 'users';
  const together = spills ? 1 : Math.min(MOST_TOGETHER, Math.ceil(ranges.length / PARTS_OF_A_CHUNK));
  const groups = Array.from({ length: Math.ceil(chunks.length / together) }, (_, g) =>
    chunks.slice(g * together, (g + 1) * together),
  );
  const tasks = groups.map((group): SplitTask => {
    const inputs = inputsOf(group, by, ['codes', 'values', 'rowMap', 'columnMap']);
    const task = { kernel: 'split-pairs', inputs, params: { by, chunks: group.length } };
    return { task, frees: group.flatMap(partitionsOf) };
  });
  return splitAmong({ ranges, rows: userCounts.length, spills, together }, tasks, ctx);
}

/** Divides a sorted part by user among the parts by item. */
function splitBlock(
  block: RatingBlock,
  firstRow: number,
  parts: readonly RowRange[],
  rows: number,
  spills: boolean,
  ctx: ExecutionContext,
): Promise<CodedChunk[][]> {
  const ranges = balancedRanges(block.offsets, Math.ceil(block.ratings / GROUP_RATINGS));
  const tasks = ranges.map((range): SplitTask => ({
    task: { kernel: 'split-block', inputs: { block: block.ref }, params: { ...range, firstRow } },
    frees: [],
  }));
  return splitAmong({ ranges: parts, rows, spills, together: 1 }, tasks, ctx);
}

interface SplitParts {
  /** Part p gets the rows of `ranges[p]`, of `rows` rows in all. */
  readonly ranges: readonly RowRange[];
  readonly rows: number;
  readonly spills: boolean;
  /** Chunks that one task cuts. */
  readonly together: number;
}

/**
 * Runs tasks that divide ratings among parts. To limit memory, a task starts only after the outputs of the task
 * `ahead` places before it are in files and that task's inputs are freed.
 */
async function splitAmong(
  { ranges, rows, spills, together }: SplitParts,
  tasks: readonly SplitTask[],
  ctx: ExecutionContext,
): Promise<CodedChunk[][]> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const ahead = Math.ceil(parallelism * (1 + 1 / together));
  const name = dataSetName('parts');
  const parts = partitionRef(`${name}/rows`);
  const refs = tasks.map((_, partition) =>
    ranges.map((_, p) =>
      (['codes', 'values'] as const).map((part) => partitionRef(`${name}/${part}.${p}`, partition)),
    ),
  );
  const replacing = tasks.map(({ task, frees }, t): ReplacingTask => {
    const outputs = refs[t].flatMap(([codes, values], p) => [
      [`partCodes.${p}`, codes],
      [`partValues.${p}`, values],
    ]);
    const whole = { ...task, inputs: { ...task.inputs, parts }, outputs: Object.fromEntries(outputs) };
    return { task: whole, frees, ...(spills && { spills: refs[t].flat() }) };
  });
  const steps = replacingSteps(STAGE, place, replacing, ahead);
  steps.free(STAGE, place, [parts]);
  const given: Given[] = [[parts, partsOfRows(ranges, rows), place]];
  const results = await runSteps(steps.steps, ctx, { given });
  const values = results.of(STAGE) as ValuesOf<'split-pairs'>[];
  const empty = refs.flatMap((own, t) => own.filter((_, p) => values[t].ratings[p] === 0).flat());
  await freeAt(ctx, STAGE, place, empty);
  return ranges.map((_, p) =>
    refs.flatMap((own, t): CodedChunk[] =>
      values[t].ratings[p] === 0 ? [] : [{ rows: values[t].ratings[p], codes: own[p][0], values: own[p][1] }],
    ),
  );
}

type SplitTask = Pick<ReplacingTask, 'frees'> & { readonly task: Omit<Task, 'outputs'> };

/** Part number of each row. */
function partsOfRows(ranges: readonly RowRange[], rows: number): Partition {
  const partOf = ranges.length > 2 ** 16 ? sharedArray(Uint32Array, rows) : sharedArray(Uint16Array, rows);
  ranges.forEach(({ from, to }, part) => partOf.fill(part, from, to));
  const firstRow = sharedArray(Int32Array, ranges.length + 1);
  firstRow.set([...ranges.map(({ from }) => from), rows]);
  return { layout: 'row-parts', rows, columns: { partOf, firstRow } };
}
