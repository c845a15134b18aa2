import { makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import type { ReadSplitOptions } from '../../engine/stream/split.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch, pruneSchema } from '../files/common-schema.ts';
import { partitionField } from '../folders/folder-columns.ts';
import type { UrlVersions } from '../http/url-versions.ts';
import type { ConstantColumn } from '../folders/folder-columns.ts';
import type { LocatedBatch, ParquetBackendName, ParquetFileInfo, ReadOptions } from './backend.ts';
import { parquetBackend } from './backends.ts';
import type { RowRange } from './pages/cut-row-group.ts';

/** Rows of a batch: enough to make the overhead per batch negligible, few enough for the caches. */
export const DEFAULT_BATCH_SIZE = 1 << 17;

/** A part of a data set as plain JSON that any thread can read. */
export type RowGroupRequest = {
  readonly file: string;
  /** Default: all. */
  readonly rowGroups?: readonly number[];
  /** Default: all, and the constants. */
  readonly columns?: readonly string[];
  readonly batchSize?: number;
  /** Columns of ids: see ValueNeeds. */
  readonly ids?: readonly string[];
  readonly backend?: ParquetBackendName;
  /**
   * A part of the only row group in `rowGroups`, from the splits of a ParquetSource. Only the backend
   * parquet-wasm reads it. Default: all rows.
   */
  readonly range?: RowRange;
  /** Columns from the names of the file's folders. */
  readonly constants?: readonly ConstantColumn[];
};

/**
 * The rows of the request, in order; every batch has its origin. With `schema` the batches have that schema
 * (columns are matched by name). `borrowed`, `waits`: see ReadSplitOptions. Throws DataError that names the
 * file and the row group.
 */
export async function* readRowGroups(
  request: RowGroupRequest,
  schema?: Schema,
  {
    borrowed = false,
    waits,
    versions,
  }: Pick<ReadSplitOptions, 'borrowed' | 'waits'> & { readonly versions?: UrlVersions } = {},
): AsyncGenerator<RecordBatch> {
  const backend = await parquetBackend(request.backend);
  const reader = await backend.open(request.file, waits, versions);
  try {
    const inFile = new Set(reader.info.schema.fields.map((field) => field.name));
    const added = (request.constants ?? []).filter(({ name }) => !inFile.has(name));
    const all = new Schema([...reader.info.schema.fields, ...added.map(partitionField)]);
    const target = schema ?? pruneSchema(all, request.columns);
    const stored = target.fields.map((field) => field.name).filter((name) => inFile.has(name));
    const options = {
      columns: stored,
      rowGroups: request.rowGroups,
      batchSize: request.batchSize ?? DEFAULT_BATCH_SIZE,
      borrowed,
      range: request.range,
      ids: request.ids,
    };
    const batches = stored.length > 0 ? reader.read(options) : rowsAlone(reader.info, options);
    for await (const { batch, rowGroup, firstRow } of batches) {
      yield setOrigin(conformBatch(batch, target, added), { file: request.file, rowGroup, firstRow });
    }
    await reader.verify?.();
  } finally {
    await reader.close();
  }
}

/** Batches without columns; the footer has the number of rows. */
function* rowsAlone(
  { rowGroups }: ParquetFileInfo,
  { rowGroups: wanted, batchSize, range }: ReadOptions,
): Generator<LocatedBatch> {
  const schema = new Schema([]);
  for (const rowGroup of wanted ?? rowGroups.keys()) {
    const { rows, firstRow } = rowGroups[rowGroup];
    const end = range ? range.from + range.rows : rows;
    for (let from = range?.from ?? 0; from < end; from += batchSize) {
      const length = Math.min(batchSize, end - from);
      const data = makeData({ type: new Struct([]), length, nullCount: 0, children: [] });
      yield { batch: new RecordBatch(schema, data), rowGroup, firstRow: firstRow + from };
    }
  }
}
