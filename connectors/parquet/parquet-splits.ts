import { throwIfAborted } from '../../engine/errors.ts';
import type { ReadSplit, SourceSplit } from '../../engine/stream/split.ts';
import type { ParquetFileInfo } from './backend.ts';
import { cutRowGroup } from './pages/cut-row-group.ts';
import { hasPlainPages } from './pages/read-pages.ts';
import { readRowGroups, type RowGroupRequest } from './read-row-groups.ts';

export const PARQUET_SPLIT = 'parquet';

/**
 * Bytes that a row is assumed to take at least when ranges are grouped. The task that reads a group holds the
 * chunks of all its ranges, so their number must be limited.
 */
const RANGE_BYTES = 4;

type ParquetSplit = SourceSplit & { readonly request: RowGroupRequest };

/**
 * Cuts a request for row groups of one file into splits. Neighbouring row groups are joined up to the target.
 * A larger row group is a split of its own, or several if its pages can be read separately.
 */
export async function parquetSplits(
  request: RowGroupRequest,
  info: ParquetFileInfo,
  targetBytes: number,
): Promise<ParquetSplit[]> {
  const { file, rowGroups } = info;
  const splits: ParquetSplit[] = [];
  const stored = info.schema.fields
    .map(({ name }) => name)
    .filter((name) => request.columns?.includes(name) ?? true);
  let groups: number[] = [];
  let [bytes, rows] = [0, 0];
  const cut = () => {
    if (groups.length > 0)
      splits.push({ format: PARQUET_SPLIT, file, bytes, rows, request: { ...request, rowGroups: groups } });
    [groups, bytes, rows] = [[], 0, 0];
  };
  for (const number of request.rowGroups ?? rowGroups.keys()) {
    const group = rowGroups[number];
    // A nested column is stored as several columns.
    const wanted = group.columns.filter(
      ({ column }) =>
        request.columns?.some((name) => column === name || column.startsWith(`${name}.`)) ?? true,
    );
    // The size of a text column is counted after decoding: a text that is stored once is decoded for each of
    // its rows.
    const size = wanted.reduce((sum, column) => sum + Math.max(column.bytes, column.textBytes ?? 0), 0);
    const ranges = request.range
      ? [request.range]
      : hasPlainPages(info, number, stored)
        ? await cutRowGroup(file, group, stored)
        : undefined;
    if (ranges !== undefined || bytes + size > targetBytes) cut();
    if (ranges !== undefined) {
      splits.push(
        ...ranges.map((range) => ({
          format: PARQUET_SPLIT,
          file,
          bytes: Math.max(Math.ceil((size * range.rows) / group.rows), RANGE_BYTES * range.rows),
          rows: range.rows,
          request: { ...request, rowGroups: [number], range },
        })),
      );
      continue;
    }
    groups.push(number);
    bytes += size;
    rows += group.rows;
  }
  cut();
  return splits;
}

/** See ReadSplit. */
export const readParquetSplit: ReadSplit = async function* (split, schema, { signal, borrowed, waits }) {
  for await (const batch of readRowGroups((split as ParquetSplit).request, schema, { borrowed, waits })) {
    throwIfAborted(signal, 'read');
    yield batch;
  }
  return undefined;
};
