import { UsageError } from '../engine/errors.ts';
import type { Source } from '../engine/stream/operator.ts';
import { ArrowSource } from './arrow/arrow-source.ts';
import { detectFormat } from './detect-format.ts';
import { delimiterOf, type FileFormatName, kindOfFormat } from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import { NdjsonSource } from './ndjson/ndjson-source.ts';
import type { ParquetBackendName } from './parquet/backend.ts';
import { ParquetSource } from './parquet/parquet-source.ts';
import { TextSource, type TextSourceOptions } from './text/text-source.ts';

export interface OpenSourceOptions extends TextSourceOptions {
  /** Default: detected from the files' extensions and first bytes. */
  readonly format?: FileFormatName;
  readonly parquetBackend?: ParquetBackendName;
}

/** A source for files, folders, globs, URLs, or "-" for stdin (with a format). */
export async function openSource(
  paths: string | readonly string[],
  options: OpenSourceOptions = {},
): Promise<Source> {
  const { format, parquetBackend, partitions, ...text } = options;
  const named = typeof paths === 'string' ? [paths] : paths;
  const kind = format === undefined ? await detectFormat(named) : kindOfFormat(format);
  if (kind === 'parquet') {
    if (named.includes(STANDARD_STREAM))
      throw new UsageError('Parquet cannot be read from stdin: reading begins with the footer at the end', {
        phase: 'read',
        advice: 'Name a file',
      });
    rejectOptions(text, kind);
    return new ParquetSource(named, { backend: parquetBackend, partitions });
  }
  if (kind === 'arrow') {
    rejectOptions(text, kind);
    return new ArrowSource(named, { partitions });
  }
  if (kind === 'ndjson') {
    const { delimiter, header, quotes, comment, decimalComma, ...ndjson } = text;
    rejectOptions({ delimiter, header, quotes, comment, decimalComma }, kind);
    return new NdjsonSource(named, { ...ndjson, partitions });
  }
  return new TextSource(named, { ...text, partitions, delimiter: text.delimiter ?? delimiterOf(format) });
}

function rejectOptions(options: object, kind: string): void {
  const idle = Object.entries(options).find(([, value]) => value !== undefined)?.[0];
  if (idle !== undefined)
    throw new UsageError(`${idle} acts only on text, and the input is ${kind}`, {
      phase: 'read',
      advice: 'Leave it out',
    });
}
