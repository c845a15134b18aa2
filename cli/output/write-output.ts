import type { openOutput as openSink, OutputOptions } from '../../api/output/open-output.ts';
import { UsageError } from '../../engine/errors.ts';
import { facts } from '../report/facts.ts';

export type CheckedSink = Awaited<ReturnType<typeof openSink>>;
export type WriteSummary = Awaited<ReturnType<CheckedSink['consume']>>;

/** Path that stands for stdin or stdout. */
export const STANDARD_STREAM = '-';

/** For --help of the commands whose output's ending says its format. */
export const OUTPUT_DESCRIPTION =
  'file, its format by its ending: .parquet, .csv, .tsv, .ndjson, .arrow (text also with .gz, .zst, .lz4); a folder of Parquet part files, without an ending; or - for stdout, with --to';

interface OutputValues extends Pick<OutputOptions, 'codec' | 'parquetBackend' | 'partitionBy'> {
  readonly force: boolean;
  readonly json: boolean;
  readonly to: OutputOptions['format'] | undefined;
}

/**
 * The sink of an output by its flags; see openOutput of the api. Throws UsageError for flags that cannot act.
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
  const api = await import('../../api/output/open-output.ts');
  return api.openOutput(output, { format: to, overwrite: force, codec, parquetBackend, partitionBy }, inputs);
}

/**
 * The text that a command prints once its output is written: nothing where the output itself went to stdout.
 */
export function summaryOf(output: string, entries: Parameters<typeof facts>[0]): string {
  return output === STANDARD_STREAM ? '' : facts(entries);
}
