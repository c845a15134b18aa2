import { STANDARD_STREAM } from '../../connectors/files/path-kinds.ts';
import type { OpenSinkOptions } from '../../connectors/formats.ts';
import { openSink } from '../../connectors/open-sink.ts';
import type { CheckedSink } from '../../connectors/output/checked-sink.ts';
import { checkWritable } from './check-output.ts';
import { refuseOverlap } from './check-overlap.ts';

export type OutputOptions = Pick<
  OpenSinkOptions,
  'format' | 'overwrite' | 'codec' | 'parquetBackend' | 'escapeFormulas' | 'partitionBy'
>;

/**
 * The sink for an output ("-": stdout), after checking that it can be written. Throws before any work:
 * UsageError for an unknown file ending, options without effect, and an output that exists or would replace
 * an input; DataError if nothing can be written.
 */
export async function openOutput(
  path: string,
  options: OutputOptions,
  inputs: readonly (string | undefined)[],
): Promise<CheckedSink> {
  const sink = await openSink(path, options);
  if (path !== STANDARD_STREAM) {
    await refuseOverlap(path, inputs);
    await checkWritable(path);
  }
  await sink.check();
  return sink;
}
