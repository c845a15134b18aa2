import type { Dataset } from '../../api/dataset.ts';
import type { RunOptions } from '../../api/session.ts';
import type { CheckedSink } from '../../connectors/open-sink.ts';
import type { Codec, ParquetBackendName } from '../../connectors/parquet/backend.ts';
import type { WriteSummary } from '../../connectors/parquet-sink.ts';
import { STANDARD_STREAM } from '../../connectors/text/text-bytes.ts';
import { UsageError } from '../../engine/errors.ts';
import { runInto } from '../../engine/logical-plan.ts';
import { checkWritable } from './check-output.ts';
import { refuseOverlap } from './check-overlap.ts';

interface OutputValues {
  readonly force: boolean;
  readonly codec: Codec;
  readonly parquetBackend: ParquetBackendName | undefined;
}

/** For --help of the commands whose output's ending says its format. */
export const outputDescription = 'file, its format by its ending: .parquet, .csv, .tsv, .arrow; or a folder of Parquet part files, without an ending';

/**
 * The sink that an --output names by its ending. Throws before any work is done: UsageError for an ending that tells no format,
 * flags that cannot act and an output that exists or would replace an input, DataError where nothing can be written.
 */
export async function openOutput(output: string, { force, codec, parquetBackend }: OutputValues, given: ReadonlySet<string>, inputs: readonly (string | undefined)[]): Promise<CheckedSink> {
  if (output === STANDARD_STREAM) throw new UsageError('--output takes a file or a folder, not stdout', { phase: 'write', advice: 'Name a file such as out.csv' });
  const { openSink } = await import('../../connectors/open-sink.ts');
  const sink = openSink(output, { overwrite: force, codec: given.has('codec') ? codec : undefined, parquetBackend });
  await refuseOverlap(output, inputs);
  await checkWritable(output);
  await sink.check();
  return sink;
}

/** Runs a data set into what `openOutput` gave. */
export async function writeOutput({ plan, session }: Dataset, sink: CheckedSink, options: RunOptions): Promise<WriteSummary> {
  return runInto(plan, sink, session.context(options));
}
