import type { Device } from '../engine/executor.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import type { Task } from '../engine/task.ts';
import { combineDuplicates } from './combine-duplicates.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';
import { blockOf, emptyBlock, type RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import type { DuplicatePolicy } from './tasks.ts';

export interface RatingBlocks {
  readonly byUser: RatingBlock;
  readonly byItem: RatingBlock;
  /** Ratings beyond the first of their (user, item) pair in the input. */
  readonly duplicates: number;
}

const STAGE = 'rating-blocks';

/**
 * Sorts coded ratings into compressed rows by user and by item (cuMF's R and Rᵀ), by three counting sorts, each in
 * parallel groups whose places are known beforehand:
 *
 *   chunks, any order -> by item (rows unordered) -> by user (items ascend) -> by item (users ascend)
 *
 * A transposition reads rows in order, so the order inside its result's rows is ascending whatever the input's order was;
 * together with the ordering of duplicates by value, permuted input gives the same bits. Releases the chunks.
 */
export async function buildRatingBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext): Promise<RatingBlocks> {
  const started = performance.now();
  ctx.events({ type: 'phase-start', phase: 'sort', total: indexed.rows, unit: 'ratings' });
  const { byUser, extra } = await buildUserBlock(indexed, duplicates, ctx);
  const ref: PartitionRef = { ...byUser.ref, name: `${byUser.ref.name}/transposed` };
  const byItem = await transposeBlock(byUser, keyCount(indexed.items), ref, ctx.executor.devices[0], ctx);
  ctx.events({ type: 'phase-end', phase: 'sort', seconds: (performance.now() - started) / 1000, done: indexed.rows, unit: 'ratings' });
  return { byUser, byItem, duplicates: extra };
}

/** The first two of those sorts, for who needs the ratings by user alone. Releases the chunks. */
export async function buildUserBlock(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
): Promise<{ readonly byUser: RatingBlock; readonly extra: number }> {
  const device = ctx.executor.devices[0];
  const name = dataSetName('blocks');
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const rowData = duplicates === 'last' ? numberRows(indexed.chunks, device, ref('row-data')) : undefined;
  const unordered = await sortChunks(indexed.chunks, keyCount(indexed.items), rowData !== undefined, ref('unordered'), device, ctx);
  for (const chunk of indexed.chunks) {
    for (const part of [chunk.codes, chunk.values, chunk.userMap, chunk.itemMap]) if (part) device.release(part);
  }
  const sorted = await transposeBlock(unordered, keyCount(indexed.users), ref('sorted'), device, ctx);
  device.release(unordered.ref);
  const { block, extra } = await combineDuplicates(sorted, duplicates, indexed, rowData, ref('by-user'), device, ctx);
  return { byUser: block, extra };
}

/** Replaces the chunks' values by row numbers, and keeps ratings and timestamps by row number aside (policy `last`). */
function numberRows(chunks: readonly CodedChunk[], device: Device, ref: PartitionRef): PartitionRef {
  const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  const ratings = sharedArray(Float32Array, rows);
  const timestamps = sharedArray(Float64Array, rows);
  let first = 0;
  for (const chunk of chunks) {
    const numbers = sharedArray(Uint32Array, chunk.rows);
    for (let i = 0; i < chunk.rows; i++) numbers[i] = first + i;
    ratings.set(chunk.ratings, first);
    timestamps.set(chunk.timestamps as Float64Array, first);
    device.put(chunk.values, { layout: 'values', rows: chunk.rows, columns: { values: numbers } });
    first += chunk.rows;
  }
  device.put(ref, { layout: 'row-data', rows, columns: { ratings, timestamps } });
  return ref;
}

async function sortChunks(
  chunks: readonly CodedChunk[],
  rows: number,
  numbered: boolean,
  ref: PartitionRef,
  device: Device,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const groupSize = Math.max(1, Math.ceil(chunks.length / device.parallelism));
  const groups = Array.from({ length: Math.ceil(chunks.length / groupSize) }, (_, g) => chunks.slice(g * groupSize, (g + 1) * groupSize));
  const inputsOf = (group: readonly CodedChunk[], withValues: boolean) => {
    const inputs: Record<string, PartitionRef> = {};
    group.forEach((chunk, i) => {
      inputs[`codes.${i}`] = chunk.codes;
      if (withValues) inputs[`values.${i}`] = chunk.values;
      if (chunk.itemMap) inputs[`rowMap.${i}`] = chunk.itemMap;
      if (chunk.userMap) inputs[`columnMap.${i}`] = chunk.userMap;
    });
    return inputs;
  };
  const params = (group: readonly CodedChunk[]) => ({ chunks: group.length, rows, by: 'items' as const });
  return countAndFill(groups, rows, numbered ? 'uint32' : 'float32', ref, device, ctx, {
    count: (group, counts) => ({ kernel: 'count-pairs', inputs: inputsOf(group, false), outputs: { counts }, params: params(group) }),
    fill: (group, cursors) => ({ kernel: 'scatter-pairs', inputs: { ...inputsOf(group, true), cursors }, outputs: { block: ref }, params: params(group) }),
  });
}

async function transposeBlock(block: RatingBlock, columns: number, ref: PartitionRef, device: Device, ctx: ExecutionContext): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, device.parallelism);
  const valueType = block.values instanceof Float32Array ? 'float32' : 'uint32';
  return countAndFill(groups, columns, valueType, ref, device, ctx, {
    count: (range, counts) => ({ kernel: 'count-columns', inputs: { block: block.ref }, outputs: { counts }, params: { ...range, columns } }),
    fill: (range, cursors) => ({ kernel: 'transpose', inputs: { block: block.ref, cursors }, outputs: { transposed: ref }, params: { ...range } }),
  });
}

/** The shape of every counting sort here: each group counts, all counts give each group its places, each group fills them. */
async function countAndFill<Group>(
  groups: readonly Group[],
  rows: number,
  valueType: 'float32' | 'uint32',
  ref: PartitionRef,
  device: Device,
  ctx: ExecutionContext,
  tasks: { count(group: Group, counts: PartitionRef): Task; fill(group: Group, cursors: PartitionRef): Task },
): Promise<RatingBlock> {
  const countRefs = groups.map((_, g): PartitionRef => ({ name: `${ref.name}/counts`, partition: g, version: 0 }));
  const cursorRefs = groups.map((_, g): PartitionRef => ({ name: `${ref.name}/cursors`, partition: g, version: 0 }));
  await runStage(ctx, STAGE, device, groups.map((group, g) => tasks.count(group, countRefs[g])));
  const counts = await Promise.all(countRefs.map(async (count) => (await device.fetch(count)).columns.counts as Int32Array));
  const lengths = new Int32Array(rows);
  for (const count of counts) for (let row = 0; row < rows; row++) lengths[row] += count[row];
  const partition: Partition = emptyBlock(lengths, valueType);
  device.put(ref, partition);
  const next = Int32Array.from((partition.columns.offsets as Int32Array).subarray(0, rows));
  groups.forEach((_, g) => {
    const cursors = sharedArray(Int32Array, rows);
    cursors.set(next);
    for (let row = 0; row < rows; row++) next[row] += counts[g][row];
    device.put(cursorRefs[g], { layout: 'cursors', rows, columns: { cursors } });
  });
  await runStage(ctx, STAGE, device, groups.map((group, g) => tasks.fill(group, cursorRefs[g])));
  for (const used of [...countRefs, ...cursorRefs]) device.release(used);
  return blockOf(ref, partition);
}
