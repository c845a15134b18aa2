import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { MixedColumn } from '../../engine/stream/operator.ts';
import { type FileFormat, FileSetSource } from '../files/file-set-source.ts';
import { fileKinds } from '../files/format-names.ts';
import type { FolderColumns } from '../folders/folder-columns.ts';
import { arrowType } from '../lines/read-column.ts';
import { rowFormat, rowSplitReader } from '../lines/row-format.ts';
import { type ValueOptions, withCommonTypes } from '../lines/row-layout.ts';
import { checkDelimiter, type TextDialect } from './dialect.ts';
import { checkComment, inferLayout, readersOf, type TextLayout, type TextOptions } from './text-layout.ts';

export interface TextSourceOptions extends TextOptions {
  /** Most rows of a batch. Default 65,536. */
  readonly batchSize?: number;
  /** Columns from the names of folders (`year=1999`). Default: 'infer'. */
  readonly partitions?: FolderColumns;
}

/**
 * Separated text (CSV, TSV, "::" and others; RFC 4180 quotes; plain, gzip, zstd or lz4; UTF-8) as a Source.
 * Delimiter, header and types are given, or inferred from the first 4 MiB of each file: int32, int64,
 * float64, date, timestamp (in UTC if a text has an offset), else utf8. Empty fields are null; so are NA, NULL
 * and the like in columns of numbers and times. A type holds for the whole file: a later value that does not fit is an error with line, column and text, or a bad row
 * if ratings are selected. Memory is a few batches for files of any size; a row of more than 1 MiB is an
 * error.
 *
 * Measured on lines of userId,movieId,rating,timestamp (bench/cases/formats.ts, one core of a shared Xeon):
 * 3.8-4.5 M lines/s, 3.3 from gzip; DuckDB on one thread 6.9. Libraries on the same lines: udsv 0.7.3 3.3
 * (typed columns) or 1.7 (typed rows), csv-parse 7.0.3 0.5-0.8, d3-dsv 3.0.2 0.3-0.7 with the file in memory,
 * papaparse 5.7.1 0.5. udsv is fast enough, but it turns a row of another length into nulls, reads to the end
 * without an error after a quote that never closes, and reads 9223372036854775807 as 9223372036854776000. So
 * this scanner was written; it makes no strings for numbers. Since then rows of plain numbers are read in one
 * pass over their bytes, in WebAssembly: userId,movieId,rating at 38 M lines a second by a thread that uses
 * each batch at once, compared with 22 for the same in JavaScript and 11 for the scanner (18 M lines, a
 * shared machine of two cores).
 */
export class TextSource extends FileSetSource<TextLayout> {
  readonly name = 'text-source';
  readonly phase = 'read';
  readonly #options: TextSourceOptions;

  /** Throws UsageError for options that cannot be used. */
  constructor(paths: string | readonly string[], options: TextSourceOptions = {}) {
    if (options.delimiter !== undefined) checkDelimiter(options.delimiter);
    if (options.comment !== undefined) checkComment(options.comment);
    const { quotes } = options;
    if (quotes !== undefined && typeof quotes !== 'boolean')
      throw new UsageError(`quotes must be true or false, got ${shown(quotes)}`);
    checkValueOptions(options);
    super(paths, textFormat(options), options.partitions);
    this.#options = options;
  }

  protected override again(): TextSource {
    return new TextSource(this.paths, this.#options);
  }

  async mixedColumns(): Promise<readonly MixedColumn[]> {
    return (await this.layouts()).flatMap(({ mixed }) => mixed);
  }

  override describe(): JsonObject {
    const { batchSize: _batchSize, partitions: _partitions, ...options } = this.#options;
    return { ...super.describe(), ...(options as JsonObject) };
  }
}

function textFormat(options: TextSourceOptions): FileFormat<TextLayout> {
  const batchSize = options.batchSize ?? 1 << 16;
  return rowFormat({
    name: 'text',
    extensions: fileKinds.text.extensions,
    batchSize,
    infer: (window, file) => inferLayout(window, file, options, batchSize),
    reconcile: (layouts, needs) => withCommonTypes(layouts, options, needs),
    scanning: ({ dialect }) => ({ ...dialect }),
  });
}

/** Reads a file or a byte range of separated text (see ReadSplit). */
export const readTextSplit = rowSplitReader((dialect) => readersOf(dialect as unknown as TextDialect));

/** Throws UsageError for options of values that cannot be used. */
export function checkValueOptions({
  types = {},
  nullValues,
  batchSize,
}: ValueOptions & { readonly batchSize?: number }): void {
  if (typeof types !== 'object' || types === null || Array.isArray(types))
    throw new UsageError(`types must be types by column such as { rating: 'float64' }, got ${shown(types)}`);
  for (const type of Object.values(types)) arrowType(type);
  if (
    nullValues !== undefined &&
    !(Array.isArray(nullValues) && nullValues.every((text) => typeof text === 'string'))
  )
    throw new UsageError(`nullValues must be a list of texts, got ${shown(nullValues)}`);
  if (batchSize !== undefined && !(Number.isSafeInteger(batchSize) && batchSize > 0))
    throw new UsageError(`batchSize must be a positive integer, not ${shown(batchSize)}`);
}
