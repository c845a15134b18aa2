import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { PartitionRef } from '../../../engine/partition.ts';
import { GROUP_RATINGS, type RowsShape, type SortedRows, sortIntoRows } from './sort-into-rows.ts';
import type { CodedChunk } from '../ids/numbered-chunk.ts';

/**
 * For the policy `last`: a partition with rating and timestamp of every row. Rows are numbered from 0 over
 * all chunks.
 */
export type RowData = PartitionRef;

/** Sorts the ratings of chunks into compressed rows by user or by item, and frees the chunks. */
export function sortChunks(
  chunks: readonly CodedChunk[],
  by: 'users' | 'items',
  shape: RowsShape,
  rowData: RowData | undefined,
  ref: PartitionRef,
  ctx: ExecutionContext,
): Promise<SortedRows> {
  return sortIntoRows(groupsOf(chunks), shape, ref, ctx, {
    count: (groups, counts, { bands, bandCount, rowBits }) => ({
      kernel: 'count-pairs',
      inputs: {
        bands,
        ...inputsOf(
          groups.flatMap(({ chunks }) => chunks),
          by,
          ['codes', 'rowMap'],
        ),
      },
      outputs: { counts },
      params: { groups: groups.map(({ chunks }) => chunks.length), bands: bandCount, by, rowBits },
    }),
    scatter: (group, cursors, { bands, block, rowBits, columnBits }) => ({
      kernel: 'scatter-pairs',
      inputs: { bands, cursors, ...inputsOf(group.chunks, by, ['codes', 'values', 'rowMap', 'columnMap']) },
      outputs: { block, ...(rowData ? { rowData } : {}) },
      params: {
        chunks: group.chunks.length,
        by,
        rowBits,
        columnBits,
        ...(rowData ? { firstRow: group.firstRow } : {}),
      },
    }),
    scattered: (group) => group.chunks.flatMap(partitionsOf),
  });
}

/** All partitions of a chunk. */
export function partitionsOf({ codes, values, userMap, itemMap }: CodedChunk): PartitionRef[] {
  return [codes, values, userMap, itemMap].filter((part) => part !== undefined);
}

type InputName = 'codes' | 'values' | 'rowMap' | 'columnMap';

/** The partitions of chunks under the tasks' names: codes.0, codes.1, ... */
export function inputsOf(
  chunks: readonly CodedChunk[],
  by: 'users' | 'items',
  names: readonly InputName[],
): Record<string, PartitionRef> {
  const inputs: Record<string, PartitionRef> = {};
  chunks.forEach(({ codes, values, userMap, itemMap }, i) => {
    const [rowMap, columnMap] = by === 'users' ? [userMap, itemMap] : [itemMap, userMap];
    const parts = { codes, values, rowMap, columnMap };
    for (const name of names) {
      const part = parts[name];
      if (part) inputs[`${name}.${i}`] = part;
    }
  });
  return inputs;
}

/** Adjacent chunks that one task copies to their bands (see sort-into-rows.ts). */
interface ChunkGroup {
  readonly chunks: readonly CodedChunk[];
  /** Number of the group's first row among all rows. */
  readonly firstRow: number;
}

/** Groups adjacent chunks, with about GROUP_RATINGS ratings each. */
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
