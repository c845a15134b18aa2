import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { compressionOf, type Compression, endingOf } from '../compression/compressions.ts';
import { outputName } from '../files/path-kinds.ts';
import { ByteOutput, requireFileName } from '../output/byte-output.ts';
import {
  type CheckedSink,
  type FilesOfFolders,
  sinkFiles,
  type WriteSummary,
  type WritingContext,
} from '../output/checked-sink.ts';
import { writeLines } from '../output/write-batches.ts';
import { checkDelimiter, defaultQuotes } from './dialect.ts';
import { SeparatedText } from './line-encoders.ts';

export interface TextSinkOptions {
  /** Characters between fields. Default by the ending: a tab for .tsv, "::" for .dat, else a comma. */
  readonly delimiter?: string;
  /** True when the first row names the columns. Default: true, but false for .dat. */
  readonly header?: boolean;
  /**
   * True for a quote (') before texts and names of columns that begin with = + - @, a tab or a carriage
   * return: spreadsheets take such a cell for a formula and run it (OWASP, "CSV Injection"). Numbers and
   * dates stay as they are. Readers keep the quote. Default: false.
   */
  readonly escapeFormulas?: boolean;
  /** Default: by the path's ending: .gz, .zst or .lz4, else none. zstd needs Node 22.15. */
  readonly compression?: Compression;
  /** Replaces an existing file. */
  readonly overwrite?: boolean;
}

/**
 * Writes a stream as one text file (or to stdout, "-") with RFC 4180 quotes where they are needed. Floats
 * always have a point or an exponent and the fewest digits that give the same number back. The file appears
 * once it is complete.
 */
export class TextSink implements CheckedSink {
  readonly name = 'text-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #options: Required<Omit<TextSinkOptions, 'overwrite' | 'escapeFormulas'>>;
  readonly #escapeFormulas: boolean;
  readonly #overwrite: boolean | undefined;

  /** Throws UsageError for a delimiter or an escapeFormulas that cannot be used. */
  constructor(path: string, options: TextSinkOptions = {}) {
    const { escapeFormulas = false } = options;
    if (typeof escapeFormulas !== 'boolean')
      throw new UsageError(`escapeFormulas must be true or false, got ${shown(escapeFormulas)}`);
    const { bare, compression } = compressionOf(path);
    const isDat = /\.dat$/i.test(bare);
    const delimiter = options.delimiter ?? (isDat ? '::' : /\.tsv$/i.test(bare) ? '\t' : ',');
    checkDelimiter(delimiter);
    requireFileName(path);
    this.#path = path;
    this.#options = {
      delimiter,
      header: options.header ?? !isDat,
      compression: options.compression ?? compression,
    };
    this.#escapeFormulas = escapeFormulas;
    this.#overwrite = options.overwrite;
  }

  describe(): JsonObject {
    return {
      path: this.#path,
      ...this.#options,
      ...(this.#escapeFormulas && { escapeFormulas: true }),
      ...(this.#overwrite && { overwrite: true }),
    };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async check(): Promise<void> {
    await ByteOutput.check(this.#path, {
      overwrite: this.#overwrite,
      compression: this.#options.compression,
    });
  }

  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const { delimiter, header, compression } = this.#options;
    const dialect = {
      delimiter,
      quotes: defaultQuotes(delimiter),
      escapeFormulas: this.#escapeFormulas,
    };
    const file = outputName(this.#path);
    const encoder = new SeparatedText(input.schema, dialect, file);
    const output = await ByteOutput.open(this.#path, { overwrite: this.#overwrite, compression });
    const rows = await writeLines(
      input,
      output,
      header ? encoder.header() : new Uint8Array(0),
      { format: 'text', dialect, file },
      ctx,
    );
    return { path: this.#path, rows, bytes: output.bytes, files: 1 };
  }
}

/**
 * Text files. Delimiter and compression come from the options, else from the path's extension, as in
 * TextSink.
 */
export function textFiles(
  { compression = 'none', ...options }: Omit<TextSinkOptions, 'overwrite'>,
  ending: 'csv' | 'tsv' | 'dat' = 'csv',
): FilesOfFolders {
  return sinkFiles('text', `.${ending}${endingOf(compression)}`, (file) => new TextSink(file, options));
}
