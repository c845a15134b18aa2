import type { RecordBatch, Schema } from 'apache-arrow';
import type { RowGroupInfo } from './footer.ts';
import type { RowRange } from './pages/cut-row-group.ts';

/** A Parquet file as its footer describes it. */
export interface ParquetFileInfo {
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  readonly schema: Schema;
  readonly rowGroups: readonly RowGroupInfo[];
  /**
   * Columns that are read page by page (see hasPlainPages), so that large row groups can be cut. Absent where
   * the backend reads whole row groups only.
   */
  readonly plainColumns?: readonly string[];
}

export interface ReadOptions {
  /** Names of top-level columns; all of them when undefined. They come in the file's order. */
  readonly columns?: readonly string[];
  /** Row groups by number, ascending; all of them when undefined. */
  readonly rowGroups?: readonly number[];
  /** Most rows of a batch. */
  readonly batchSize: number;
  /**
   * A part of the one row group that `rowGroups` names; a backend without `plainColumns` gets no ranges.
   * Default: all rows.
   */
  readonly range?: RowRange;
  /** See ReadSplitOptions. */
  readonly borrowed?: boolean;
}

/** A batch and the place of its row 0 in the file. */
export interface LocatedBatch {
  readonly batch: RecordBatch;
  readonly rowGroup: number;
  /** Row of the file. */
  readonly firstRow: number;
}

/**
 * An open file, which its owner closes. `read` may be called again once the stream before it has ended or was
 * left.
 */
export interface ParquetFileReader {
  readonly info: ParquetFileInfo;
  /**
   * The rows in order; a batch never crosses row groups. Throws DataError that names the file and the row
   * group when the data are damaged or this backend cannot read them. Leaving the loop early frees all
   * memory.
   *
   */
  read(options: ReadOptions): AsyncGenerator<LocatedBatch>;
  close(): Promise<void>;
}

export const codecs = ['zstd', 'snappy', 'gzip', 'brotli', 'lz4', 'uncompressed'] as const;
export type Codec = (typeof codecs)[number];

export interface WriteOptions {
  readonly codec: Codec;
  /** Rows of a row group. */
  readonly rowGroupSize: number;
  /**
   * False for columns whose values seldom repeat (factors), where dictionaries only cost time. Default true.
   */
  readonly dictionary?: boolean;
}

/**
 * One file being written. `close` ends it; after a failure, or instead of `close`, `abort` does, and the
 * caller removes the file.
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
 * A library that reads and writes Parquet.
 *
 * Contract: it gives the values of the file in their types, or throws DataError.
 */
export interface ParquetBackend {
  readonly name: ParquetBackendName;
  /** `waits`: see ReadSplitOptions. */
  open(file: string, waits?: boolean): Promise<ParquetFileReader>;
  /** Throws UsageError when the schema or the codec is beyond this backend. The file must not exist. */
  create(file: string, schema: Schema, options: WriteOptions): Promise<ParquetFileWriter>;
}

export type ParquetBackendName = 'parquet-wasm' | 'parquetjs-lite';
export const parquetBackendNames: readonly ParquetBackendName[] = ['parquet-wasm', 'parquetjs-lite'];
