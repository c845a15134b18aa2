import { DataError } from '../../../engine/errors.ts';
import {
  emptyKeys,
  keyArrays,
  type KeyColumn,
  type KeyType,
  keysFromArrays,
} from '../../../engine/keys/key-column.ts';
import { isCounted } from '../../../engine/keys/tables/make-key-table.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { freeAt, giveTo, runSteps } from '../../../engine/run/run-steps.ts';
import { replacingSteps, valuesOfStage, TaskRun } from '../../tasks/run-tasks.ts';
import { type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import type { CodedChunk, NumberedChunk, NumberedSide, RatingTypes } from '../reading/rating-chunk.ts';
import { evenRanges } from '../row-ranges.ts';

export interface IndexedRatings {
  /** Distinct external ids, ascending. Kernels use an id's position here instead of the id. */
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly rows: number;
  /** Ratings of each user and item, by position. */
  readonly userCounts: Int32Array;
  readonly itemCounts: Int32Array;
  readonly chunks: readonly CodedChunk[];
  /** True if users and items are swapped (see relabel): then `users` are the items. */
  readonly swapped?: boolean;
  /** True if the chunks did not fit into memory: their codes and values are in files. */
  readonly spilled?: boolean;
  /** The chunks' shared memory, if they have one. */
  readonly room?: PairRoom;
}

/** The same ratings with users and items exchanged. */
export function swappedRatings({
  users,
  items,
  userCounts,
  itemCounts,
  ...rest
}: IndexedRatings): IndexedRatings {
  const ids = { users: items, items: users, userCounts: itemCounts, itemCounts: userCounts };
  return { ...rest, ...ids, swapped: rest.swapped !== true };
}

/**
 * Numbers the users and items of all chunks together: each id gets its position among all sorted ids, and each
 * chunk a map from its own codes to these positions. The chunks' ids are freed. `spilled`: the chunks are in
 * files. Throws DataError for an empty input.
 */
export async function indexChunks(
  numbered: readonly NumberedChunk[],
  types: RatingTypes,
  spilled: boolean,
  ctx: ExecutionContext,
  room?: PairRoom,
): Promise<IndexedRatings> {
  if (numbered.length === 0)
    throw new DataError('no ratings are left to work on', {
      phase: 'read',
      advice: 'Check the input, the split and the policies for bad rows',
    });
  const recoded = await recodeFar(numbered, types, spilled, ctx);
  const [users, items] = await bothSides((side) => placeIds(recoded, side, types[side], ctx));
  const chunks = recoded.map((chunk, c): CodedChunk => ({
    rows: chunk.rows,
    codes: chunk.codes,
    values: chunk.values,
    userMap: users.maps[c],
    itemMap: items.maps[c],
  }));
  const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  // If ids were recoded, the new codes have their own memory, and the chunks no longer share one.
  const kept =
    room !== undefined && chunks.every(({ codes }, c) => codes === numbered[c].codes) ? { room } : {};
  if (room !== undefined && !('room' in kept)) await leaveRoom(room, false, ctx);
  return {
    ...kept,
    users: users.keys,
    items: items.keys,
    userCounts: users.counts,
    itemCounts: items.counts,
    rows,
    chunks,
    spilled,
  };
}

/** A further task needs at least this number of table entries or ids: smaller shares are not worth a task. */
const TASK_ENTRIES = 1 << 16;

interface Placed {
  /** Distinct ids, ascending, and the number of occurrences of each. */
  readonly keys: KeyColumn;
  readonly counts: Int32Array;
  /** Map from codes to positions, one for each chunk. */
  readonly maps: readonly PartitionRef[];
}

/** Runs `work` for both sides concurrently. A failure is thrown after both have ended. */
export async function bothSides<Result>(
  work: (side: Side) => Promise<Result>,
): Promise<[users: Result, items: Result]> {
  const sides = [work('users'), work('items')] as const;
  await Promise.allSettled(sides);
  return await Promise.all(sides);
}

/** The ids of one side of the chunks, and names of partitions for them. */
interface SideIds {
  readonly chunks: readonly NumberedChunk[];
  readonly side: Side;
  readonly type: KeyType;
  readonly ctx: ExecutionContext;
  readonly place: Place;
  readonly parallelism: number;
  ref(part: string, partition?: number): PartitionRef;
}

/** Assigns positions to the ids of one side. */
function placeIds(
  chunks: readonly NumberedChunk[],
  side: Side,
  type: KeyType,
  ctx: ExecutionContext,
): Promise<Placed> {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const name = dataSetName(side);
  const ref = (part: string, partition = 0) => partitionRef(`${name}/${part}`, partition);
  const ids: SideIds = { chunks, side, type, ctx, place, parallelism, ref };
  const range = tableRange(chunks, side);
  return range === undefined ? uniteKeys(ids) : countTable(ids, ...range);
}

/**
 * Numbers integer ids of a narrow range: counts them in one table indexed by id, from which the positions
 * follow. The map of a chunk is a view of the table's.
 */
async function countTable(
  { chunks, side, type, ctx, place, parallelism, ref }: SideIds,
  least: number,
  entries: number,
): Promise<Placed> {
  const inputs: Record<string, PartitionRef> = {};
  const ranges = chunks.map((chunk, c) => {
    const [first, last] = (chunk[side].summary as { readonly range: readonly [number, number] }).range;
    const counted = isCounted(last - first + 1, chunk.rows);
    inputs[`${counted ? 'keys' : 'codes'}.${c}`] = counted ? chunk[side].keys : chunk.codes;
    return [first - least, last - least + 1] as const;
  });
  const run = new TaskRun(ctx, STAGE);
  const [map, ids] = [ref('map'), ref('ids')];
  const counts = run.send('counts', countsPartition(sharedArray(Int32Array, entries)));
  run.sliced(
    {
      kernel: 'count-ids',
      inputs: inputs as TaskOf<'count-ids'>['inputs'],
      outputs: { counts },
      params: { starts: ranges.map(([start]) => start), side },
    },
    evenRanges(entries, sharesOf(entries, parallelism)),
  );
  const by = run.task({
    kernel: 'rank-ids',
    inputs: { counts },
    outputs: { map, keys: ids },
    params: { least, wide: type === 'int64' },
  });
  for (const made of [map, ids]) run.handOut(made, by);
  for (const chunk of chunks) run.free(chunk[side].keys);
  const [all, { columns }] = (await run.end()).handed;
  const maps = chunks.map((_, c) => ref('maps', c));
  await giveTo(
    ctx,
    place,
    maps.map((ref, c) => [ref, mapPartition((all.columns.map as Uint32Array).subarray(...ranges[c]))]),
  );
  return { keys: keysFromArrays(columns, 'key'), counts: columns.counts as Int32Array, maps };
}

/**
 * Numbers other ids: each task finds the distinct ids of one share of all possible ids, in a hash table of
 * its own. Then the sorted shares are merged.
 */
async function uniteKeys(ids: SideIds): Promise<Placed> {
  const { chunks, side, ctx, place, parallelism, ref } = ids;
  const sizes = chunks.map((chunk) => (chunk[side].summary as { readonly size: number }).size);
  const shares = sharesOf(
    sizes.reduce((sum, size) => sum + size, 0),
    parallelism,
  );
  const own = sizes.map((_, c) => ref('own', c));
  const keys = Object.fromEntries(chunks.map((chunk, c) => [`keys.${c}`, chunk[side].keys]));
  await giveTo(
    ctx,
    place,
    own.map((ref, c) => [ref, mapPartition(sharedArray(Uint32Array, sizes[c]))]),
  );
  const run = new TaskRun(ctx, STAGE);
  for (let share = 0; share < shares; share++) {
    const outputs = {
      share: ref('share', share),
      ...Object.fromEntries(own.map((ref, c) => [`map.${c}`, ref])),
    };
    const params = { share, shares, chunks: sizes.length };
    // All shares write the same map, but different codes of it, so their tasks may run at the same time.
    const bands = Object.fromEntries(own.map((_, c) => [`map.${c}`, share]));
    run.task({ kernel: 'unite-ids', inputs: keys, outputs, params }, { bands });
  }
  for (const ref of Object.values(keys)) run.free(ref);
  return mergeShares(ids, await run.values('unite-ids'), own);
}

async function mergeShares(
  { type, ctx, place, parallelism, ref }: SideIds,
  united: readonly ValuesOf<'unite-ids'>[],
  own: readonly PartitionRef[],
): Promise<Placed> {
  const size = united.reduce((sum, share) => sum + share.size, 0);
  const counts = sharedArray(Int32Array, size);
  const keys = emptyKeys(
    type,
    size,
    united.reduce((sum, { textBytes }) => sum + textBytes, 0),
  );
  const numbers = Math.max(...united.map((share) => share.size)) * united.length;
  const inputs = Object.fromEntries(united.map((_, share) => [`share.${share}`, ref('share', share)]));
  const parts = sharesOf(size, parallelism);
  const run = new TaskRun(ctx, STAGE);
  const outputs = {
    keys: run.send('merged', { layout: 'keys', rows: size, columns: { ...keyArrays(keys, 'key'), counts } }),
    places: run.send('places', mapPartition(sharedArray(Uint32Array, numbers))),
  };
  run.steps.task(
    STAGE,
    place,
    { kernel: 'merge-ids', inputs, outputs, params: { shares: united.length, parts } },
    { slices: Array.from({ length: parts }, (_, part) => ({ part })) },
  );
  const maps = own.map((first, c) => {
    const map = ref('maps', c);
    run.task({
      kernel: 'compose-maps',
      inputs: { first, second: outputs.places },
      outputs: { map },
      params: {},
    });
    return map;
  });
  for (const ref of [...own, ...Object.values(inputs)]) run.free(ref);
  await run.end();
  return { keys, counts, maps };
}

/** Number of occurrences of each id; the chunks' codes must already be positions among all ids. */
export async function countPositions(
  chunks: readonly CodedChunk[],
  side: Side,
  size: number,
  ctx: ExecutionContext,
): Promise<Int32Array> {
  const { parallelism } = hostDevice(ctx.executor).info;
  const made = sharedArray(Int32Array, size);
  const run = new TaskRun(ctx, STAGE);
  const counts = run.send('counts', countsPartition(made));
  const inputs = Object.fromEntries(chunks.map(({ codes }, c) => [`codes.${c}`, codes]));
  run.sliced(
    { kernel: 'count-ids', inputs, outputs: { counts }, params: { starts: chunks.map(() => 0), side } },
    evenRanges(size, sharesOf(size, parallelism)),
  );
  await run.end();
  return made;
}

function countsPartition(counts: Int32Array): Partition {
  return { layout: 'id-counts', rows: counts.length, columns: { counts } };
}

/** The map from codes to positions as a partition: `map[code]` is the position. */
export function mapPartition(map: Uint32Array): Partition {
  return { layout: 'map', rows: map.length, columns: { map } };
}

/** Number of tasks to divide entries among. */
function sharesOf(entries: number, parallelism: number): number {
  return Math.max(1, Math.min(parallelism, Math.ceil(entries / TASK_ENTRIES)));
}

const STAGE = 'index-ids';

type Side = 'users' | 'items';

/**
 * The integer ids of a chunk may be coded by their distance from the chunk's least id (narrow-range codes).
 * Ids of all chunks are then counted in one table over the range of all ids, if the table has at most this
 * number of entries, or at most one entry for every two ratings.
 */
const TABLE_ENTRIES = 1 << 22;
/**
 * The least id, and the number of entries of a table that counts the ids of all chunks. Undefined if a chunk
 * has no narrow-range codes (see TABLE_ENTRIES), or if the table would be too large.
 */
function tableRange(
  chunks: readonly NumberedChunk[],
  side: Side,
): readonly [least: number, entries: number] | undefined {
  let [least, greatest, rows] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (const chunk of chunks) {
    const { summary } = chunk[side];
    if (!('range' in summary)) return undefined;
    least = Math.min(least, summary.range[0]);
    greatest = Math.max(greatest, summary.range[1]);
    rows += chunk.rows;
  }
  const entries = greatest - least + 1;
  return entries <= Math.max(TABLE_ENTRIES, rows / 2) ? [least, entries] : undefined;
}

/**
 * Replaces narrow-range codes (see TABLE_ENTRIES) by numbers of distinct ids, if the range of the ids of all
 * chunks is too wide for one table. `spilled`: codes are in files, and stay there.
 */
async function recodeFar(
  chunks: readonly NumberedChunk[],
  types: Readonly<Record<Side, KeyType>>,
  spilled: boolean,
  ctx: ExecutionContext,
): Promise<readonly NumberedChunk[]> {
  const sides = ['users', 'items'] as const;
  const far = sides.filter((side) => tableRange(chunks, side) === undefined);
  const name = dataSetName('recoded');
  const recoded = chunks.flatMap((chunk, partition) => {
    const ref = (part: string) => partitionRef(`${name}/${part}`, partition);
    const near = (side: Side) => {
      const { summary } = chunk[side];
      return far.includes(side) && 'range' in summary
        ? { least: summary.range[0], wide: types[side] === 'int64' }
        : null;
    };
    const params = { users: near('users'), items: near('items') };
    const changed = sides.filter((side) => params[side] !== null);
    if (changed.length === 0) return [];
    const keys: { readonly [Key in Side]?: PartitionRef } = Object.fromEntries(
      changed.map((side) => [side, ref(side)]),
    );
    const outputs = { recoded: ref('codes'), ...keys };
    const task: TaskOf<'recode-ids'> = {
      kernel: 'recode-ids',
      inputs: { codes: chunk.codes },
      outputs,
      params,
    };
    const frees = [chunk.codes, ...changed.map((side) => chunk[side].keys)];
    return [{ chunk, task, frees, ...(spilled && { spills: [outputs.recoded] }) }];
  });
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const { steps } = replacingSteps(STAGE, place, recoded, 2 * parallelism);
  const values = valuesOfStage(await runSteps(steps, ctx), STAGE, 'recode-ids');
  return chunks.map((chunk) => {
    const at = recoded.findIndex((one) => one.chunk === chunk);
    if (at < 0) return chunk;
    const { outputs } = recoded[at].task;
    const own = (side: Side): NumberedSide => {
      const [keys, summary] = [outputs[side], values[at][side]];
      return keys && summary ? { keys, summary } : chunk[side];
    };
    return { ...chunk, codes: outputs.recoded, users: own('users'), items: own('items') };
  });
}

/**
 * One allocation for the id numbers and ratings of all rows, if their number is known before they are read:
 * `users` and `items` Uint32[rows], `values` Float32[rows]. Threads fill it chunk by chunk. Once the chunks
 * are sorted by user, the block by item is made in the same memory. New memory would cost a page fault for
 * every 1,024 numbers, and the released memory a garbage collection in every thread.
 */
export interface PairRoom {
  readonly ref: PartitionRef;
  readonly columns: {
    readonly users: Uint32Array;
    readonly items: Uint32Array;
    readonly values: Float32Array;
  };
}

const LAYOUT = 'pair-room';

export async function roomForPairs(
  rows: number,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<PairRoom> {
  const columns = {
    users: sharedArray(Uint32Array, rows),
    items: sharedArray(Uint32Array, rows),
    values: sharedArray(Float32Array, rows),
  };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, { layout: LAYOUT, rows, columns }]]);
  return { ref, columns };
}

/**
 * Frees the memory. If `reused`, a block has taken over the arrays `users` and `values`, so only `items`
 * becomes garbage.
 */
export async function leaveRoom(
  { ref, columns: { items, ...kept } }: PairRoom,
  reused: boolean,
  ctx: ExecutionContext,
): Promise<void> {
  const { place } = hostDevice(ctx.executor).info;
  const columns = reused ? { items } : { items, ...kept };
  await giveTo(ctx, place, [[ref, { layout: LAYOUT, rows: items.length, columns }]]);
  await freeAt(ctx, 'rating-blocks', place, [ref]);
}
