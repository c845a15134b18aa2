import { basename, extname } from 'node:path';
import { UsageError } from '../engine/errors.ts';
import { ArrowSink } from './arrow/arrow-sink.ts';
import { delimiterOf, formatOfPath } from './files/format-names.ts';
import type { FileFormatName } from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import type { CheckedSink } from './output/checked-sink.ts';
import type { Codec, ParquetBackendName } from './parquet/backend.ts';
import { ParquetSink } from './parquet/parquet-sink.ts';
import { TextSink } from './text/text-sink.ts';

export interface OpenSinkOptions {
  /** By the path's ending when it is not given; a path without an ending is a folder of Parquet. */
  readonly format?: FileFormatName;
  readonly overwrite?: boolean;
  /** Of Parquet. */
  readonly codec?: Codec;
  readonly parquetBackend?: ParquetBackendName;
  /** Of text. */
  readonly delimiter?: string;
  readonly header?: boolean;
}

/** A sink for a path, or "-" for stdout (with a format). Throws UsageError for an ending that tells no format and for options that cannot act. */
export function openSink(path: string, options: OpenSinkOptions = {}): CheckedSink {
  const { overwrite, codec, parquetBackend, delimiter, header } = options;
  if (path === STANDARD_STREAM && options.format === undefined) throw new UsageError('the format for stdout is not known', { phase: 'write', advice: 'Name it: csv, tsv, dat or arrow' });
  const format = options.format ?? formatOfOutput(path);
  const kind = format === 'parquet' || format === 'arrow' ? format : 'text';
  const only = (owner: string, given: Readonly<Record<string, unknown>>) => {
    const idle = kind === owner ? undefined : Object.keys(given).find((name) => given[name] !== undefined);
    if (idle !== undefined) throw new UsageError(`${idle} acts only on ${owner}, and the output is ${kind}`, { phase: 'write', file: path, advice: 'Leave it out' });
  };
  only('parquet', { codec });
  only('text', { delimiter, header });
  if (kind === 'arrow') return new ArrowSink(path, { overwrite });
  if (kind === 'text') return new TextSink(path, { overwrite, header: header ?? (format === 'dat' ? false : undefined), delimiter: delimiter ?? delimiterOf(format) });
  if (path === STANDARD_STREAM) throw new UsageError('Parquet cannot be written to stdout', { phase: 'write', advice: 'Name a file, or write csv or arrow' });
  return new ParquetSink(path, { overwrite, codec, backend: parquetBackend });
}

/** By the ending; a name without one, or with "/" behind it, is a folder of Parquet. "v1.2" and "2024.06.01" have none. */
function formatOfOutput(path: string): FileFormatName {
  const format = formatOfPath(path);
  const ending = path.endsWith('/') ? '' : extname(basename(path));
  // Other endings of Parquet are read, but one file is written only as .parquet.
  const isFolder = !/^\.[a-z]/i.test(ending);
  if (isFolder || ending === '.parquet') return 'parquet';
  if (format === 'text' || format === 'arrow') return format;
  throw new UsageError(`${path}: the ending tells no format`, { phase: 'write', advice: 'Give .parquet, .csv, .tsv, .arrow, or a folder name without an ending' });
}
