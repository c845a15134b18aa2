import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { giveTo, takeFrom } from '../../engine/run/hand-over.ts';
import { combineDuplicates } from './combine-duplicates.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import { sortIntoRows, STAGE } from './sort-into-rows.ts';
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
 * bits. Releases the chunks.
 */
export async function buildRatingBlocks(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext): Promise<RatingBlocks> {
  using _ = ctx.metrics.begin('sort');
  const phase = startPhase(ctx.events, 'sort', 'ratings', indexed.rows);
  const rowNumbers = rowNumbersFor(indexed.rows);
  const { byUser, extra } = await buildUserBlock(indexed, duplicates, ctx, rowNumbers);
  const byItem = await transposeBlock(byUser, extra === 0 ? indexed.itemCounts : undefined, keyCount(indexed.items), rowNumbers, ctx);
  phase.end(indexed.rows);
  return { byUser, byItem, duplicates: extra };
}

/** Scratch for sorting ratings; one for both sorts, since shared memory is freed only when collected. */
function rowNumbersFor(ratings: number): Uint32Array {
  return sharedArray(Uint32Array, ratings);
}

/** The ratings by user alone. Releases the chunks. */
export async function buildUserBlock(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
  rowNumbers = rowNumbersFor(indexed.rows),
): Promise<{ readonly byUser: RatingBlock; readonly extra: number }> {
  using _ = ctx.metrics.begin('sort');
  const name = dataSetName('blocks');
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const rowData = duplicates === 'last' ? await numberRows(indexed.chunks, ref('row-data'), ctx) : undefined;
  const sorted = await sortChunks(indexed, rowData !== undefined, rowNumbers, ref('sorted'), ctx);
  const { block, extra } = await combineDuplicates(sorted, duplicates, indexed, rowData, ref('by-user'), ctx);
  return { byUser: block, extra };
}

/** Replaces the chunks' values by row numbers, and keeps ratings and timestamps by row number aside (policy `last`). */
async function numberRows(chunks: readonly CodedChunk[], ref: PartitionRef, ctx: ExecutionContext): Promise<PartitionRef> {
  const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  const ratings = sharedArray(Float32Array, rows);
  const timestamps = sharedArray(Float64Array, rows);
  const { place } = hostDevice(ctx.executor).info;
  const values = await takeFrom(ctx, STAGE, place, chunks.map((chunk) => chunk.values));
  const given: [PartitionRef, Partition][] = [[ref, { layout: 'row-data', rows, columns: { ratings, timestamps } }]];
  let first = 0;
  chunks.forEach((chunk, c) => {
    const numbers = sharedArray(Uint32Array, chunk.rows);
    for (let i = 0; i < chunk.rows; i++) numbers[i] = first + i;
    const { columns } = values[c];
    ratings.set(columns.values as Float32Array, first);
    timestamps.set(columns.timestamps as Float64Array, first);
    given.push([chunk.values, { layout: 'values', rows: chunk.rows, columns: { values: numbers } }]);
    first += chunk.rows;
  });
  await giveTo(ctx, place, given);
  return ref;
}

async function sortChunks(
  { chunks, userCounts, items }: IndexedRatings,
  numbered: boolean,
  rowNumbers: Uint32Array,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const groupSize = Math.max(1, Math.ceil(chunks.length / hostDevice(ctx.executor).info.parallelism));
  const groups = Array.from({ length: Math.ceil(chunks.length / groupSize) }, (_, g) => chunks.slice(g * groupSize, (g + 1) * groupSize));
  const params = (group: readonly CodedChunk[], bands: number) => ({ chunks: group.length, bands, by: 'users' as const });
  return sortIntoRows(groups, { lengths: userCounts, columns: keyCount(items), ordered: false, numbered }, rowNumbers, ref, ctx, {
    count: (group, { bands, counts, bandCount }) => ({
      kernel: 'count-pairs',
      inputs: { bands, ...inputsOf(group, ['codes', 'rowMap']) },
      outputs: { counts },
      params: params(group, bandCount),
    }),
    scatter: (group, { bands, cursors, block, rows, bandCount }) => ({
      kernel: 'scatter-pairs',
      inputs: { bands, cursors, ...inputsOf(group, ['codes', 'values', 'rowMap', 'columnMap']) },
      outputs: { block, rows },
      params: params(group, bandCount),
    }),
    scattered: chunks.flatMap(({ codes, values, userMap, itemMap }) => [codes, values, userMap, itemMap].filter((part) => part !== undefined)),
  });
}

/** The partitions of a group's chunks under the tasks' names for them: codes.0, codes.1, ... */
function inputsOf(group: readonly CodedChunk[], names: readonly ('codes' | 'values' | 'rowMap' | 'columnMap')[]): Record<string, PartitionRef> {
  const inputs: Record<string, PartitionRef> = {};
  group.forEach(({ codes, values, userMap, itemMap }, i) => {
    const parts = { codes, values, rowMap: userMap, columnMap: itemMap };
    for (const name of names) {
      const part = parts[name];
      if (part) inputs[`${name}.${i}`] = part;
    }
  });
  return inputs;
}

async function transposeBlock(block: RatingBlock, counts: Int32Array | undefined, columns: number, rowNumbers: Uint32Array, ctx: ExecutionContext): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, hostDevice(ctx.executor).info.parallelism);
  const ref: PartitionRef = { ...block.ref, name: `${block.ref.name}/transposed` };
  const lengths = counts ?? countsOf(block.indices, columns);
  return sortIntoRows(groups, { lengths, columns: block.rows, ordered: true, numbered: false }, rowNumbers, ref, ctx, {
    count: (range, { bands, counts: output, bandCount }) => ({ kernel: 'count-columns', inputs: { block: block.ref, bands }, outputs: { counts: output }, params: { ...range, bands: bandCount } }),
    scatter: (range, { bands, cursors, block: transposed, rows, bandCount }) => ({ kernel: 'scatter-columns', inputs: { block: block.ref, bands, cursors }, outputs: { transposed, rows }, params: { ...range, bands: bandCount } }),
  });
}

function countsOf(indices: Uint32Array, columns: number): Int32Array {
  const counts = new Int32Array(columns);
  for (let k = 0; k < indices.length; k++) counts[indices[k]]++;
  return counts;
}
