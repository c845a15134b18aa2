import { hostDevice } from '../../engine/run/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { startPhase } from '../../engine/phase.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { combineDuplicates, type CombinedRatings } from './combine-duplicates.ts';
import type { CodedChunk, IndexedRatings } from './index-ids.ts';
import type { RatingBlock } from './rating-block.ts';
import { balancedRanges } from './row-ranges.ts';
import { GROUP_RATINGS, type SortedRows, sortIntoRows } from './sort-into-rows.ts';
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
  const { byUser, extra, removed } = await buildUserBlock(indexed, duplicates, ctx);
  const lengths = indexed.itemCounts.slice();
  for (const columns of removed) for (const column of columns) lengths[column]--;
  const byItem = await transposeBlock(byUser, lengths, ctx);
  phase.end(indexed.rows);
  return { byUser, byItem, duplicates: extra };
}

/** The ratings by user alone. Releases the chunks. */
export async function buildUserBlock(indexed: IndexedRatings, duplicates: DuplicatePolicy, ctx: ExecutionContext): Promise<Omit<CombinedRatings, 'block'> & { readonly byUser: RatingBlock }> {
  using _ = ctx.metrics.begin('sort');
  const name = dataSetName('blocks');
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const rowData = duplicates === 'last' ? await roomForRowData(indexed.rows, ref('row-data'), ctx) : undefined;
  const sorted = await sortChunks(indexed, rowData, ref('sorted'), ctx);
  const { block, ...combined } = await combineDuplicates(sorted, duplicates, indexed, rowData, ref('by-user'), ctx);
  return { byUser: block, ...combined };
}

/** Ratings and timestamps by row number (policy `last`), which the scattering tasks fill. */
async function roomForRowData(rows: number, ref: PartitionRef, ctx: ExecutionContext): Promise<PartitionRef> {
  const columns = { ratings: sharedArray(Float32Array, rows), timestamps: sharedArray(Float64Array, rows) };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, { layout: 'row-data', rows, columns }]]);
  return ref;
}

/** Chunks that are scattered by one task. */
interface ChunkGroup {
  readonly chunks: readonly CodedChunk[];
  /** Number of its first row among all. */
  readonly firstRow: number;
}

function sortChunks({ chunks, userCounts, items }: IndexedRatings, rowData: PartitionRef | undefined, ref: PartitionRef, ctx: ExecutionContext): Promise<SortedRows> {
  const params = ({ chunks }: ChunkGroup, bands: number) => ({ chunks: chunks.length, bands, by: 'users' as const });
  const shape = { lengths: userCounts, columns: keyCount(items), order: rowData ? 'by-column' : 'by-value', numbered: rowData !== undefined } as const;
  return sortIntoRows(groupsOf(chunks), shape, ref, ctx, {
    count: (group, { bands, counts, bandCount }) => ({
      kernel: 'count-pairs',
      inputs: { bands, ...inputsOf(group, ['codes', 'rowMap']) },
      outputs: { counts },
      params: params(group, bandCount),
    }),
    scatter: (group, { bands, cursors, block, bandCount, columnBits }) => ({
      kernel: 'scatter-pairs',
      inputs: { bands, cursors, ...inputsOf(group, ['codes', 'values', 'rowMap', 'columnMap']) },
      outputs: { block, ...(rowData ? { rowData } : {}) },
      params: { ...params(group, bandCount), columnBits, ...(rowData ? { firstRow: group.firstRow } : {}) },
    }),
    scattered: ({ chunks }) => chunks.flatMap(({ codes, values, userMap, itemMap }) => [codes, values, userMap, itemMap].filter((part) => part !== undefined)),
  });
}

/** Adjacent chunks, of about GROUP_RATINGS together. */
function groupsOf(chunks: readonly CodedChunk[]): ChunkGroup[] {
  const groups: { chunks: CodedChunk[]; firstRow: number; rows: number }[] = [];
  let firstRow = 0;
  for (const chunk of chunks) {
    const last = groups.at(-1);
    if (last !== undefined && last.rows + chunk.rows <= GROUP_RATINGS) {
      last.chunks.push(chunk);
      last.rows += chunk.rows;
    } else {
      groups.push({ chunks: [chunk], firstRow, rows: chunk.rows });
    }
    firstRow += chunk.rows;
  }
  return groups;
}

/** The partitions of a group's chunks under the tasks' names for them: codes.0, codes.1, ... */
function inputsOf({ chunks }: ChunkGroup, names: readonly ('codes' | 'values' | 'rowMap' | 'columnMap')[]): Record<string, PartitionRef> {
  const inputs: Record<string, PartitionRef> = {};
  chunks.forEach(({ codes, values, userMap, itemMap }, i) => {
    const parts = { codes, values, rowMap: userMap, columnMap: itemMap };
    for (const name of names) {
      const part = parts[name];
      if (part) inputs[`${name}.${i}`] = part;
    }
  });
  return inputs;
}

/** `lengths`: ratings of each column of the block. */
async function transposeBlock(block: RatingBlock, lengths: Int32Array, ctx: ExecutionContext): Promise<RatingBlock> {
  const groups = balancedRanges(block.offsets, Math.max(hostDevice(ctx.executor).info.parallelism, Math.ceil(block.ratings / GROUP_RATINGS)));
  const ref: PartitionRef = { ...block.ref, name: `${block.ref.name}/transposed` };
  const sorted = await sortIntoRows(groups, { lengths, columns: block.rows, order: 'kept' }, ref, ctx, {
    count: (range, { bands, counts, bandCount }) => ({ kernel: 'count-columns', inputs: { block: block.ref, bands }, outputs: { counts }, params: { ...range, bands: bandCount } }),
    scatter: (range, { bands, cursors, block: transposed, bandCount, columnBits }) => ({ kernel: 'scatter-columns', inputs: { block: block.ref, bands, cursors }, outputs: { transposed }, params: { ...range, bands: bandCount, columnBits } }),
  });
  return sorted.block;
}
