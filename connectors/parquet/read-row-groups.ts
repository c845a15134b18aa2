import { Schema } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';
import type { ReadSplitOptions } from '../../engine/stream/split.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch, pruneSchema } from '../files/common-schema.ts';
import { partitionField } from '../files/hive-partitions.ts';
import type { ConstantColumn } from '../files/hive-partitions.ts';
import type { ParquetBackendName } from './backend.ts';
import { parquetBackend } from './backends.ts';
import type { RowRange } from './pages/cut-row-group.ts';

/** Rows of a batch: enough to make work per batch negligible, few enough for the caches. */
export const DEFAULT_BATCH_SIZE = 1 << 17;

/** A part of a data set as plain JSON, which any thread can read. */
export type RowGroupRequest = {
  readonly file: string;
  /** Default: all of them. */
  readonly rowGroups?: readonly number[];
  /** Default: all of them, and the constants. */
  readonly columns?: readonly string[];
  readonly batchSize?: number;
  readonly backend?: ParquetBackendName;
  /**
   * A part of the one row group that `rowGroups` names, as the splits of a ParquetSource give it; the backend
   * parquet-wasm alone reads it. Default: all rows.
   */
  readonly range?: RowRange;
  /** Columns from the names of the file's folders. */
  readonly constants?: readonly ConstantColumn[];
};

/**
 * The rows of the request, in order; every batch has its origin. With `schema` the batches have that schema
 * (columns are matched by name); `borrowed` and `waits` are of ReadSplitOptions. Throws DataError that names
 * the file and the row group.
 *
 */
export async function* readRowGroups(
  request: RowGroupRequest,
  schema?: Schema,
  { borrowed = false, waits }: Pick<ReadSplitOptions, 'borrowed' | 'waits'> = {},
): AsyncGenerator<RecordBatch> {
  const backend = await parquetBackend(request.backend);
  const reader = await backend.open(request.file, waits);
  try {
    const inFile = new Set(reader.info.schema.fields.map((field) => field.name));
    const added = (request.constants ?? []).filter(({ name }) => !inFile.has(name));
    const all = new Schema([...reader.info.schema.fields, ...added.map(partitionField)]);
    const target = schema ?? pruneSchema(all, request.columns);
    const stored = target.fields.map((field) => field.name).filter((name) => inFile.has(name));
    // Reads the file's first column to count the rows, where none of its own columns is wanted.
    const columns = stored.length > 0 ? stored : [reader.info.schema.fields[0].name];
    const options = {
      columns,
      rowGroups: request.rowGroups,
      batchSize: request.batchSize ?? DEFAULT_BATCH_SIZE,
      borrowed,
      range: request.range,
    };
    for await (const { batch, rowGroup, firstRow } of reader.read(options)) {
      yield setOrigin(conformBatch(batch, target, added), { file: request.file, rowGroup, firstRow });
    }
  } finally {
    await reader.close();
  }
}
