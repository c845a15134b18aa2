import type { RecordBatch, Schema } from 'apache-arrow';
import type { ReadSplitOptions } from '../../engine/stream/split.ts';
import type { UrlVersions } from '../http/request.ts';
import type { RowGroupInfo } from './footer.ts';
import type { RowRange } from './pages/cut-row-group.ts';

/** Properties of a Parquet file, from its footer. */
export interface ParquetFileInfo {
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  readonly schema: Schema;
  readonly rowGroups: readonly RowGroupInfo[];
  /**
   * Columns that can be read page by page (see hasPlainPages), so that large row groups can be cut. Absent if
   * the backend reads only whole row groups.
   */
  readonly plainColumns?: readonly string[];
}

export interface ReadOptions {
  /** Names of top-level columns; all if undefined. The result is in the file's order. */
  readonly columns?: readonly string[];
  /** Numbers of row groups, ascending; all if undefined. */
  readonly rowGroups?: readonly number[];
  /** Most rows of a batch. */
  readonly batchSize: number;
  /**
   * A part of the only row group in `rowGroups`. Not used for backends without `plainColumns`. Default: all
   * rows.
   */
  readonly range?: RowRange;
  /** Columns of ids: see ValueNeeds. */
  readonly ids?: readonly string[] | undefined;
  /** See ReadSplitOptions. */
  readonly borrowed?: boolean;
  /** See ReadSplitOptions. */
  readonly needed?: ReadSplitOptions['needed'];
}

/** A batch, and the position of its row 0 in the file. */
export interface LocatedBatch {
  readonly batch: RecordBatch;
  readonly rowGroup: number;
  /** Row number in the file. */
  readonly firstRow: number;
}

/**
 * An open file; the caller closes it. `read` may be called again after the previous stream ended or was left.
 */
export interface ParquetFileReader {
  readonly info: ParquetFileInfo;
  /**
   * Reads the rows in order; a batch never spans row groups. Throws DataError that names the file and the row
   * group if the data are damaged or this backend cannot read them. Leaving the loop early frees all memory.
   */
  read(options: ReadOptions): AsyncGenerator<LocatedBatch>;
  /**
   * Called after the last row. Throws DataError if the file has changed, as far as that can be found (see
   * HttpFile.verify).
   */
  verify?(): Promise<void>;
  close(): Promise<void>;
}

export const codecs = ['zstd', 'snappy', 'gzip', 'brotli', 'lz4', 'uncompressed'] as const;
export type Codec = (typeof codecs)[number];

export interface WriteOptions {
  readonly codec: Codec;
  /** Most rows of a row group. */
  readonly rowGroupSize: number;
  /**
   * False for columns whose values rarely repeat (factors): a dictionary would only cost time. Default true.
   */
  readonly dictionary?: boolean;
}

/**
 * A file being written. End it with `close`; after a failure, or instead of `close`, with `abort`. The caller
 * then removes the file.
 */
export interface ParquetFileWriter {
  write(batch: RecordBatch): Promise<void>;
  close(): Promise<WrittenFile>;
  abort(): Promise<void>;
}

export interface WrittenFile {
  readonly rows: number;
  readonly bytes: number;
}

/**
 * A library that reads and writes Parquet. It must return the values of the file in their types, or throw
 * DataError.
 */
export interface ParquetBackend {
  readonly name: ParquetBackendName;
  /** `waits`: see ReadSplitOptions; `versions`: of files on web servers. */
  open(file: string, waits?: boolean, versions?: UrlVersions): Promise<ParquetFileReader>;
  /** Throws UsageError if the backend does not support the schema or the codec. The file must not exist. */
  create(file: string, schema: Schema, options: WriteOptions): Promise<ParquetFileWriter>;
}

export type ParquetBackendName = 'parquet-wasm' | 'parquetjs-lite';
export const parquetBackendNames: readonly ParquetBackendName[] = ['parquet-wasm', 'parquetjs-lite'];
