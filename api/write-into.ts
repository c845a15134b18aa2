import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { readSplit } from '../connectors/read-split.ts';
import { runInto } from '../engine/stream/logical-plan.ts';
import { inThreads } from '../operators/pipeline/rows-of-splits.ts';
import type { Dataset } from './dataset.ts';
import type { RunOptions } from './session.ts';

/** Writes the rows of a data set; threads read them where they can, and encode them. */
export function writeInto(
  { plan, session }: Dataset,
  sink: CheckedSink,
  options: RunOptions,
): Promise<WriteSummary> {
  return runInto(inThreads(plan, readSplit, session.splitBytes), sink, session.context(options));
}
