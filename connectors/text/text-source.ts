import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { FileSetSource } from '../files/file-set-source.ts';
import type { FileFormat } from '../files/file-set-source.ts';
import { textExtensions } from '../files/format-names.ts';
import { arrowType } from './arrow-type.ts';
import { checkDelimiter } from './dialect.ts';
import { TextFile } from './text-file.ts';
import { withTypes } from './text-layout.ts';
import type { TextLayout, TextOptions } from './text-layout.ts';

export interface TextSourceOptions extends TextOptions {
  /** Most rows of a batch. Default 65,536. */
  readonly batchSize?: number;
}

/**
 * Separated text (CSV, TSV, "::" and others; RFC 4180 quotes; gzip or not; UTF-8) as a Source. Delimiter, header and types
 * are given, or inferred from the first 4 MiB of each file: int32, int64, float64, else utf8; empty fields are null.
 * A type holds for the whole file: a later value that does not fit is an error with line, column and text. Memory is that
 * of a few batches for files of any size; a row of more than 1 MiB is an error.
 *
 * Measured on lines of userId,movieId,rating,timestamp (bench/text.ts, one core of a shared Xeon): 3.8-4.5 M lines/s, 3.3
 * from gzip; DuckDB on one thread 6.9. Libraries on the same lines: udsv 0.7.3 3.3 (typed columns) or 1.7 (typed rows),
 * csv-parse 7.0.3 0.5-0.8, d3-dsv 3.0.2 0.3-0.7 with the file in memory, papaparse 5.7.1 0.5. udsv is fast enough, but a
 * row of another length becomes nulls there, a quote that never closes swallows the rest without an error, and
 * 9223372036854775807 becomes 9223372036854776000. Hence this scanner, which makes no strings for numbers.
 */
export class TextSource extends FileSetSource<TextLayout> {
  readonly name = 'text-source';
  readonly #options: TextSourceOptions;

  /** Throws UsageError for options that cannot be used. */
  constructor(paths: string | readonly string[], options: TextSourceOptions = {}) {
    const { delimiter, types = {}, batchSize } = options;
    if (delimiter !== undefined) checkDelimiter(delimiter);
    for (const type of Object.values(types)) arrowType(type);
    if (batchSize !== undefined && !(Number.isSafeInteger(batchSize) && batchSize > 0)) throw new UsageError(`batchSize must be a positive integer, not ${batchSize}`);
    super(paths, textFormat(options));
    this.#options = options;
  }

  override describe(): JsonObject {
    const { delimiter, header, quotes, columns, types } = this.#options;
    return { paths: this.paths, delimiter, header, quotes, columns, types };
  }
}

function textFormat(options: TextSourceOptions): FileFormat<TextLayout> {
  const batchSize = options.batchSize ?? 1 << 16;
  return {
    extensions: textExtensions,
    open: async (file, known) => {
      const text = await TextFile.open(file, options, batchSize, known);
      return { layout: text.layout, read: (layout, schema, signal) => text.read(layout, schema, batchSize, signal), close: () => text.close() };
    },
    reconcile: (layouts) => layouts.map((layout, index) => withCommonKinds(layout, layouts, options, index)),
  };
}

/** The layout with one type for columns of the same name in all files: the narrowest that holds the first part of each. */
function withCommonKinds(layout: TextLayout, all: readonly TextLayout[], { types = {} }: TextSourceOptions, index: number): TextLayout {
  const kinds = layout.names.map((name) => all.reduce((seen, { names, kinds: own }) => (names.includes(name) ? seen | own[names.indexOf(name)] : seen), 0));
  return withTypes({ ...layout, kinds }, types, `file ${index + 1}`);
}
