import { UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { Source } from '../engine/stream/operator.ts';
import type { ReadSplit } from '../engine/stream/split.ts';
import type { ArrowCodec } from './arrow/ipc-messages.ts';
import type { FileFormatName, FileKind } from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import type { CheckedSink, FilesOfFolders } from './output/checked-sink.ts';
import type { Codec, ParquetBackendName } from './parquet/backend.ts';
import type { TextSourceOptions } from './text/text-source.ts';

export interface OpenSourceOptions extends TextSourceOptions {
  /** Default: detected from the files' extensions and first bytes. */
  readonly format?: FileFormatName;
  readonly parquetBackend?: ParquetBackendName;
}

export interface OpenSinkOptions {
  /** Default: by the path's ending; a path without an ending is a folder of Parquet. */
  readonly format?: FileFormatName;
  readonly overwrite?: boolean;
  /** For Parquet, and lz4 and zstd for Arrow too. */
  readonly codec?: Codec;
  /** For Parquet alone. */
  readonly parquetBackend?: ParquetBackendName;
  /** For text alone, as is `header`. */
  readonly delimiter?: string;
  readonly header?: boolean;
  /** For text alone. */
  readonly escapeFormulas?: boolean;
  /**
   * Columns whose values name folders of the output. `path` is then the folder that contains these folders.
   */
  readonly partitionBy?: readonly string[];
}

/**
 * The form in which rows are stored, as plain JSON for the threads that encode them: what the format's `encode`
 * takes. `file` is the name in errors.
 */
export type Encoding = JsonObject & { readonly format: FileKind; readonly file: string };

/** `format`: the name by which the user chose the format, or the path's ending does. */
type SinkOptions = Omit<OpenSinkOptions, 'format'> & { readonly format: FileFormatName };

/**
 * A kind of files, as data sets, threads and outputs use it. Its code is loaded when it is used: threads load
 * only the readers of the splits that they are given.
 */
export interface Format {
  /** Options of its source that not every format has. */
  readonly sourceOptions: readonly (keyof OpenSourceOptions)[];
  /** Options of its sink that not every format has. */
  readonly sinkOptions: readonly (keyof OpenSinkOptions)[];
  /** Throws UsageError for options that cannot be used. */
  source(paths: readonly string[], options: OpenSourceOptions): Promise<Source>;
  /** A sink for a path, or "-" for stdout. Throws UsageError for options that cannot be used. */
  sink(path: string, options: SinkOptions): Promise<CheckedSink>;
  /** The files of folders that values name. Throws UsageError for options that cannot be used. */
  files(path: string, options: SinkOptions): Promise<FilesOfFolders>;
  readSplit(): Promise<ReadSplit>;
  /**
   * Encodes the rows of an Arrow IPC stream, in threads: as lines, or as one row group. `firstRow` is the first
   * row's number in errors. Absent if the calling thread writes batches as they are.
   */
  encode?(stream: Uint8Array, encoding: Encoding, firstRow: number): Promise<Uint8Array>;
}

const lineOptions = ['columns', 'types', 'nullValues', 'batchSize'] as const;
const textOptions = ['delimiter', 'header', 'quotes', 'comment', 'decimalComma'] as const;

export const formats: Readonly<Record<FileKind, Format>> = {
  parquet: {
    sourceOptions: [],
    sinkOptions: ['codec'],
    source: async (paths, { parquetBackend, partitions }) => {
      if (paths.includes(STANDARD_STREAM))
        throw new UsageError('Parquet cannot be read from stdin: reading begins with the footer at the end', {
          phase: 'read',
          advice: 'Name a file',
        });
      const { ParquetSource } = await import('./parquet/parquet-source.ts');
      return new ParquetSource(paths, { backend: parquetBackend, partitions });
    },
    sink: async (path, { overwrite, codec, parquetBackend }) => {
      if (path === STANDARD_STREAM)
        throw new UsageError('Parquet cannot be written to stdout', {
          phase: 'write',
          advice: 'Name a file, or set the option format: csv, ndjson or arrow',
        });
      const { ParquetSink } = await import('./parquet/parquet-sink.ts');
      return new ParquetSink(path, { overwrite, codec, backend: parquetBackend });
    },
    files: async (path, { codec, parquetBackend }) =>
      (await import('./parquet/parquet-sink.ts')).parquetFiles(path, { codec, backend: parquetBackend }),
    readSplit: async () => (await import('./parquet/parquet-source.ts')).readParquetSplit,
    encode: async (stream, encoding) =>
      (await import('./parquet/parquet-wasm/encode-row-group.ts')).encodeRowGroup(stream, encoding),
  },
  text: {
    sourceOptions: [...textOptions, ...lineOptions],
    sinkOptions: ['delimiter', 'header', 'escapeFormulas'],
    source: async (paths, { format, parquetBackend: _backend, ...options }) => {
      const { TextSource } = await import('./text/text-source.ts');
      return new TextSource(paths, { ...options, delimiter: options.delimiter ?? delimiterOf(format) });
    },
    sink: async (path, { format, overwrite, delimiter, header, escapeFormulas }) => {
      const { TextSink } = await import('./text/text-sink.ts');
      return new TextSink(path, {
        overwrite,
        header: header ?? (format === 'dat' ? false : undefined),
        delimiter: delimiter ?? delimiterOf(format),
        escapeFormulas,
      });
    },
    files: async (_path, { format, delimiter, header, escapeFormulas }) =>
      (await import('./text/text-sink.ts')).textFiles(
        { delimiter, header, escapeFormulas },
        format === 'tsv' || format === 'dat' ? format : 'csv',
      ),
    readSplit: async () => (await import('./text/text-source.ts')).readTextSplit,
    encode: async (...rows) => (await import('./text/line-encoders.ts')).encodeText(...rows),
  },
  ndjson: {
    sourceOptions: lineOptions,
    sinkOptions: [],
    source: async (paths, { columns, types, nullValues, batchSize, partitions }) => {
      const { NdjsonSource } = await import('./ndjson/ndjson-source.ts');
      return new NdjsonSource(paths, { columns, types, nullValues, batchSize, partitions });
    },
    sink: async (path, { overwrite }) =>
      new (await import('./ndjson/ndjson-sink.ts')).NdjsonSink(path, { overwrite }),
    files: async () => (await import('./ndjson/ndjson-sink.ts')).ndjsonFiles({}),
    readSplit: async () => (await import('./ndjson/ndjson-source.ts')).readNdjsonSplit,
    encode: async (...rows) => (await import('./text/line-encoders.ts')).encodeJson(...rows),
  },
  arrow: {
    sourceOptions: [],
    sinkOptions: ['codec'],
    source: async (paths, { partitions }) =>
      new (await import('./arrow/arrow-source.ts')).ArrowSource(paths, { partitions }),
    sink: async (path, { overwrite, codec }) => {
      const { ArrowSink } = await import('./arrow/arrow-sink.ts');
      return new ArrowSink(path, { overwrite, codec: codec as ArrowCodec | undefined });
    },
    files: async (_path, { codec }) =>
      (await import('./arrow/arrow-sink.ts')).arrowFiles({ codec: codec as ArrowCodec | undefined }),
    readSplit: async () => (await import('./arrow/arrow-source.ts')).readArrowSplit,
  },
};

/** The delimiter of a text format; undefined where it is inferred. */
function delimiterOf(format: FileFormatName | undefined): string | undefined {
  return format === 'tsv' ? '\t' : format === 'dat' ? '::' : undefined;
}
