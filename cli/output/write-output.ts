import type { Dataset } from '../../api/dataset.ts';
import type { RunOptions } from '../../api/run-session.ts';
import type { OpenSinkOptions } from '../../connectors/open-sink.ts';
import type { CheckedSink } from '../../connectors/output/checked-sink.ts';
import { UsageError } from '../../engine/errors.ts';
import { facts } from '../report/facts.ts';
import { checkWritable } from './check-output.ts';
import { refuseOverlap } from './check-overlap.ts';

export type { CheckedSink };
export type WriteSummary = Awaited<ReturnType<CheckedSink['consume']>>;

/** Path that stands for stdin or stdout. */
export const STANDARD_STREAM = '-';

/** For --help of the commands whose output's ending says its format. */
export const OUTPUT_DESCRIPTION =
  'file, its format by its ending: .parquet, .csv, .tsv, .ndjson, .arrow (text also with .gz, .zst, .lz4); a folder of Parquet part files, without an ending; or - for stdout, with --to';

interface OutputValues extends Pick<OpenSinkOptions, 'codec' | 'parquetBackend' | 'partitionBy'> {
  readonly force: boolean;
  readonly json: boolean;
  readonly to: OpenSinkOptions['format'] | undefined;
}

/**
 * The sink of an output, stdout included. Throws before any work is done: UsageError for an ending that tells
 * no format, flags that cannot act and an output that exists or would replace an input, DataError where
 * nothing can be written.
 *
 */
export async function openOutput(
  output: string,
  { force, json, to, codec, parquetBackend, partitionBy }: OutputValues,
  inputs: readonly (string | undefined)[],
): Promise<CheckedSink> {
  if (output === STANDARD_STREAM && json)
    throw new UsageError('--json and the output would both go to stdout', {
      advice: 'Name a file for the output, or leave --json out',
    });
  if (output === STANDARD_STREAM && to === undefined)
    throw new UsageError('the format for stdout is not known', {
      phase: 'write',
      advice: 'Set --to: csv, tsv, dat, ndjson or arrow',
    });
  const { openSink } = await import('../../connectors/open-sink.ts');
  const sink = openSink(output, { format: to, overwrite: force, codec, parquetBackend, partitionBy });
  if (output !== STANDARD_STREAM) {
    await refuseOverlap(output, inputs);
    await checkWritable(output);
  }
  await sink.check();
  return sink;
}

/**
 * The text that a command prints once its output is written: nothing where the output itself went to stdout.
 */
export function summaryOf(output: string, entries: Parameters<typeof facts>[0]): string {
  return output === STANDARD_STREAM ? '' : facts(entries);
}

/** Runs a data set into an opened output. */
export async function writeOutput(
  rows: Dataset,
  sink: CheckedSink,
  options: RunOptions,
): Promise<WriteSummary> {
  const { writeInto } = await import('../../api/write-into.ts');
  return writeInto(rows, sink, options);
}
