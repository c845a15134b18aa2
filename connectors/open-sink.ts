import { basename, extname } from 'node:path';
import { UsageError } from '../engine/errors.ts';
import { type FileFormatName, kindOfFormat, kindOfPath } from './files/format-names.ts';
import { STANDARD_STREAM } from './files/path-kinds.ts';
import { PartitionedSink } from './folders/partitioned-sink.ts';
import { formats, type OpenSinkOptions } from './formats.ts';
import type { CheckedSink } from './output/checked-sink.ts';

/** Options that not every format has, and the format that messages name for each. */
const owners = { codec: 'parquet', delimiter: 'text', header: 'text', escapeFormulas: 'text' } as const;

/**
 * A sink for a path, or "-" for stdout (with a format). Throws UsageError for an unknown ending and for
 * options that do not apply to the format.
 */
export async function openSink(path: string, options: OpenSinkOptions = {}): Promise<CheckedSink> {
  if (path === STANDARD_STREAM && options.format === undefined)
    throw new UsageError('the format for stdout is not known', {
      phase: 'write',
      advice: 'Set the option format: csv, tsv, dat, ndjson or arrow',
    });
  const format = options.format ?? formatOfOutput(path);
  const kind = kindOfFormat(format);
  const { sinkOptions, sink, files } = formats[kind];
  for (const [name, owner] of Object.entries(owners) as [keyof typeof owners, string][]) {
    // An option that is false suits every format, if it asks for nothing.
    const isGiven = options[name] !== undefined && !(name === 'escapeFormulas' && !options[name]);
    if (isGiven && !sinkOptions.includes(name))
      throw new UsageError(`${name} acts only on ${owner}, and the output is ${kind}`, {
        phase: 'write',
        file: path,
        advice: 'Leave it out',
      });
  }
  const { partitionBy: columns, overwrite } = options;
  if (columns === undefined) return sink(path, { ...options, format });
  return new PartitionedSink(path, await files(path, { ...options, format }), { columns, overwrite });
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
