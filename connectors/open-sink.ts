import { basename, extname } from 'node:path';
import { UsageError } from '../engine/errors.ts';
import { ArrowSink } from './arrow/arrow-sink.ts';
import type { ArrowCodec } from './arrow/ipc-messages.ts';
import { delimiterOf, kindOfFormat, kindOfPath } from './files/format-names.ts';
import type { FileFormatName } from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import { arrowFiles, ndjsonFiles, parquetFiles, textFiles } from './folders/files-of-folders.ts';
import { type FilesOfFolders, PartitionedSink } from './folders/partitioned-sink.ts';
import { NdjsonSink } from './ndjson/ndjson-sink.ts';
import type { CheckedSink } from './output/checked-sink.ts';
import type { Codec, ParquetBackendName } from './parquet/backend.ts';
import { ParquetSink } from './parquet/parquet-sink.ts';
import { TextSink } from './text/text-sink.ts';

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
