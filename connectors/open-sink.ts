import { basename, extname } from 'node:path';
import { UsageError } from '../engine/errors.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { ArrowSink, type ArrowSinkOptions } from './arrow/arrow-sink.ts';
import type { ArrowCodec } from './arrow/ipc-messages.ts';
import { type Compression, endingOf } from './compression/compressions.ts';
import {
  delimiterOf,
  kindOfFormat,
  kindOfPath,
  type FileFormatName,
  arrowExtensions,
  ndjsonExtensions,
  parquetExtensions,
  textExtensions,
} from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import { type FilesOfFolders, PartitionedSink } from './folders/partitioned-sink.ts';
import { NdjsonSink, type NdjsonSinkOptions } from './ndjson/ndjson-sink.ts';
import type { CheckedSink, WriteSummary, WritingContext } from './output/checked-sink.ts';
import type { Codec, ParquetBackendName } from './parquet/backend.ts';
import { ParquetSink, checkParquetOptions } from './parquet/parquet-sink.ts';
import { writeParquetFiles, type ParquetSinkOptions } from './parquet/write/parquet-files.ts';
import { TextSink, type TextSinkOptions } from './text/text-sink.ts';

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
 * A sink for a path, or "-" for stdout (with a format). Throws UsageError for an unknown ending and for
 * options that do not apply to the format.
 */
export function openSink(path: string, options: OpenSinkOptions = {}): CheckedSink {
  const { overwrite, codec, parquetBackend, delimiter, header, escapeFormulas } = options;
  if (path === STANDARD_STREAM && options.format === undefined)
    throw new UsageError('the format for stdout is not known', {
      phase: 'write',
      advice: 'Set the option format: csv, tsv, dat, ndjson or arrow',
    });
  const format = options.format ?? formatOfOutput(path);
  const kind = kindOfFormat(format);
  const only = (owner: string, given: Readonly<Record<string, unknown>>) => {
    const idle = kind === owner ? undefined : Object.keys(given).find((name) => given[name] !== undefined);
    if (idle !== undefined)
      throw new UsageError(`${idle} acts only on ${owner}, and the output is ${kind}`, {
        phase: 'write',
        file: path,
        advice: 'Leave it out',
      });
  };
  if (kind !== 'arrow') only('parquet', { codec });
  // An option that is false suits every format, since it asks for nothing.
  only('text', { delimiter, header, escapeFormulas: escapeFormulas || undefined });
  if (options.partitionBy !== undefined)
    return new PartitionedSink(path, filesOf(path, format, options), {
      columns: options.partitionBy,
      overwrite,
    });
  if (kind === 'arrow') return new ArrowSink(path, { overwrite, codec: codec as ArrowCodec | undefined });
  if (kind === 'ndjson') return new NdjsonSink(path, { overwrite });
  if (kind === 'text')
    return new TextSink(path, {
      overwrite,
      header: header ?? (format === 'dat' ? false : undefined),
      delimiter: delimiter ?? delimiterOf(format),
      escapeFormulas,
    });
  if (path === STANDARD_STREAM)
    throw new UsageError('Parquet cannot be written to stdout', {
      phase: 'write',
      advice: 'Name a file, or set the option format: csv, ndjson or arrow',
    });
  return new ParquetSink(path, { overwrite, codec, backend: parquetBackend });
}

/** The files of folders that values name. */
function filesOf(
  path: string,
  format: FileFormatName,
  { codec, parquetBackend, delimiter, header, escapeFormulas }: OpenSinkOptions,
): FilesOfFolders {
  switch (kindOfFormat(format)) {
    case 'arrow':
      return arrowFiles({ codec: codec as ArrowCodec | undefined });
    case 'ndjson':
      return ndjsonFiles({});
    case 'text':
      return textFiles(
        { delimiter, header, escapeFormulas },
        format === 'tsv' || format === 'dat' ? format : 'csv',
      );
    default:
      return parquetFiles(path, { codec, backend: parquetBackend });
  }
}

/**
 * The format of a path by its ending. A path without an ending ("v1.2" and "2024.06.01" have none), or one
 * that ends with "/", is a folder of Parquet.
 */
function formatOfOutput(path: string): FileFormatName {
  const kind = kindOfPath(path);
  const ending = path.endsWith('/') ? '' : extname(basename(path));
  // Other extensions of Parquet are accepted for reading, but a single file is written only as .parquet.
  const isFolder = !/^\.[a-z]/i.test(ending);
  if (isFolder || ending === '.parquet') return 'parquet';
  if (kind !== undefined && kind !== 'parquet') return kind;
  throw new UsageError(`${path}: the extension does not name a format`, {
    phase: 'write',
    advice: 'Give .parquet, .csv, .tsv, .ndjson, .arrow, or a folder name without an ending',
  });
}

/** Throws UsageError for options that cannot be used. */
export function parquetFiles(path: string, options: Omit<ParquetSinkOptions, 'overwrite'>): FilesOfFolders {
  checkParquetOptions(options);
  const { rowsPerPart = 1 << 24 } = options;
  return {
    name: 'parquet',
    extension: '.parquet',
    isFile: (name) => hasEnding(name, parquetExtensions),
    write: (fileName, rows, ctx) =>
      writeParquetFiles({ ...options, rowsPerPart, fileName, output: path }, rows, ctx),
  };
}

/**
 * Text files. Delimiter and compression come from the options, else from the path's extension, as in
 * TextSink.
 */
export function textFiles(
  { compression, ...options }: Omit<TextSinkOptions, 'overwrite'>,
  ending: 'csv' | 'tsv' | 'dat' = 'csv',
): FilesOfFolders {
  const extension = `.${ending}${packed(compression)}`;
  return sinkFiles(ending, extension, textExtensions, (file) => new TextSink(file, options));
}

export function ndjsonFiles({ compression }: Omit<NdjsonSinkOptions, 'overwrite'>): FilesOfFolders {
  return sinkFiles(
    'ndjson',
    `.ndjson${packed(compression)}`,
    ndjsonExtensions,
    (file) => new NdjsonSink(file),
  );
}

export function arrowFiles(options: Omit<ArrowSinkOptions, 'overwrite'>): FilesOfFolders {
  const extension = options.format === 'stream' ? '.arrows' : '.arrow';
  return sinkFiles('arrow', extension, arrowExtensions, (file) => new ArrowSink(file, options));
}

function packed(compression: Compression = 'none'): string {
  return endingOf(compression);
}

/** A sink that writes one file. */
interface OneFile {
  consume(rows: BatchStream, ctx: WritingContext): Promise<WriteSummary>;
}

/**
 * Makes the writer of a format whose sink writes one file. Throws the sink's UsageError for options that
 * cannot be used.
 */
function sinkFiles(
  name: string,
  extension: string,
  extensions: readonly string[],
  sinkOf: (file: string) => OneFile,
): FilesOfFolders {
  void sinkOf(`part${extension}`);
  return {
    name,
    extension,
    isFile: (file) => hasEnding(file, extensions),
    write: (file, rows, ctx) => sinkOf(file(0)).consume(rows, ctx),
  };
}

function hasEnding(name: string, extensions: readonly string[]): boolean {
  return extensions.some((extension) => name.toLowerCase().endsWith(extension));
}
