import type { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import type { RowGroupRequest } from '../../connectors/parquet/read-row-groups.ts';

/** Consecutive row groups of one file. */
export interface RowGroupChunk {
  readonly request: RowGroupRequest;
  readonly rows: number;
}

/**
 * All row groups of the source in order, in chunks of one row group or of at most `rowsPerChunk` rows; one
 * empty chunk when there are no rows.
 */
export async function rowGroupChunks(source: ParquetSource, rowsPerChunk: number): Promise<RowGroupChunk[]> {
  const infos = new Map((await source.files()).map((info) => [info.file, info]));
  const chunks = (await source.requests()).flatMap((request) => {
    const { file, rowGroups = [] } = request;
    const rowsOf = (group: number) => infos.get(file)?.rowGroups[group].rows ?? 0;
    const cut: { groups: number[]; rows: number }[] = [];
    for (const group of rowGroups) {
      const last = cut.at(-1);
      if (last === undefined || last.rows + rowsOf(group) > rowsPerChunk)
        cut.push({ groups: [group], rows: rowsOf(group) });
      else {
        last.groups.push(group);
        last.rows += rowsOf(group);
      }
    }
    return cut.map(({ groups, rows }) => ({ request: { ...request, rowGroups: groups }, rows }));
  });
  const [first] = infos.keys();
  return chunks.length > 0 ? chunks : [{ request: { file: first, rowGroups: [] }, rows: 0 }];
}
