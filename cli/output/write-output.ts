import type { Dataset } from '../../api/dataset.ts';
import type { RunOptions } from '../../api/session.ts';
import type { OpenSinkOptions } from '../../connectors/open-sink.ts';
import type { CheckedSink } from '../../connectors/output/checked-sink.ts';
import { UsageError } from '../../engine/errors.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import type { WriteSummary } from '../../index.ts';
import { checkWritable } from './check-output.ts';
import { refuseOverlap } from './check-overlap.ts';

export type { CheckedSink };

/** Path that stands for stdin or stdout. */
export const STANDARD_STREAM = '-';

/** For --help of the commands whose output's ending says its format. */
export const OUTPUT_DESCRIPTION = 'file, its format by its ending: .parquet, .csv, .tsv, .arrow; or a folder of Parquet part files, without an ending';

interface OutputValues extends Pick<OpenSinkOptions, 'format' | 'codec' | 'parquetBackend'> {
  readonly force: boolean;
}

/**
 * The sink of an output, stdout included. Throws before any work is done: UsageError for an ending that tells no format,
 * flags that cannot act and an output that exists or would replace an input, DataError where nothing can be written.
 */
export async function openOutput(output: string, { force, format, codec, parquetBackend }: OutputValues, inputs: readonly (string | undefined)[]): Promise<CheckedSink> {
  const { openSink } = await import('../../connectors/open-sink.ts');
  const sink = openSink(output, { format, overwrite: force, codec, parquetBackend });
  if (output !== STANDARD_STREAM) {
    await refuseOverlap(output, inputs);
    await checkWritable(output);
  }
  await sink.check();
  return sink;
}

/** The same for a command that prints its own result to stdout. */
export async function openFileOutput(output: string, values: OutputValues, inputs: readonly (string | undefined)[]): Promise<CheckedSink> {
  if (output === STANDARD_STREAM) throw new UsageError('--output takes a file or a folder, not stdout', { phase: 'write', advice: 'Name a file such as out.csv' });
  return openOutput(output, values, inputs);
}

/** Runs a data set into an opened output. */
export async function writeOutput({ plan, session }: Dataset, sink: CheckedSink, options: RunOptions): Promise<WriteSummary> {
  return runInto(plan, sink, session.context(options));
}
