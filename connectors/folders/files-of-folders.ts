import type { BatchStream } from '../../engine/stream/stream.ts';
import { ArrowSink, type ArrowSinkOptions } from '../arrow/arrow-sink.ts';
import { type Compression, endingOf } from '../compression/compressions.ts';
import {
  arrowExtensions,
  ndjsonExtensions,
  parquetExtensions,
  textExtensions,
} from '../files/format-names.ts';
import { NdjsonSink, type NdjsonSinkOptions } from '../ndjson/ndjson-sink.ts';
import type { WriteSummary, WritingContext } from '../output/checked-sink.ts';
import { checkParquetOptions } from '../parquet/parquet-sink.ts';
import { writeParquetFiles, type ParquetSinkOptions } from '../parquet/write/parquet-files.ts';
import { TextSink, type TextSinkOptions } from '../text/text-sink.ts';
import type { FilesOfFolders } from './partitioned-sink.ts';

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
