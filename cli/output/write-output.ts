import type { openOutput as openSink, OutputOptions } from '../../api/output/open-output.ts';
import { UsageError } from '../../engine/errors.ts';
import { facts } from '../report/facts.ts';

export type CheckedSink = Awaited<ReturnType<typeof openSink>>;
export type WriteSummary = Awaited<ReturnType<CheckedSink['consume']>>;

/** The path that means stdin or stdout. */
export const STANDARD_STREAM = '-';

/** For --help of commands whose output format follows from the file ending. */
export const OUTPUT_DESCRIPTION =
  'file, its format by its ending: .parquet, .csv, .tsv, .ndjson, .arrow (text also with .gz, .zst, .lz4); a folder of Parquet part files, without an ending; or - for stdout, with --to';

interface OutputValues extends Pick<
  OutputOptions,
  'codec' | 'parquetBackend' | 'escapeFormulas' | 'partitionBy'
> {
  readonly force: boolean;
  readonly json: boolean;
  readonly to: OutputOptions['format'] | undefined;
}

/**
 * The sink of an output by its flags; see openOutput of the api. Throws UsageError for flags without effect.
 */
export async function openOutput(
  output: string,
  { force, json, to, escapeFormulas, codec, parquetBackend, partitionBy }: OutputValues,
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
  return api.openOutput(
    output,
    { format: to, overwrite: force, codec, parquetBackend, escapeFormulas, partitionBy },
    inputs,
  );
}

/** The text to print after the output has been written; empty if the output itself was written to stdout. */
export function summaryOf(output: string, entries: Parameters<typeof facts>[0]): string {
  return output === STANDARD_STREAM ? '' : facts(entries);
}
