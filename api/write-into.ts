import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { runInto } from '../engine/stream/logical-plan.ts';
import type { Dataset } from './dataset.ts';
import { readyPlan } from './run-rows.ts';
import type { RunOptions } from './session.ts';

/** Writes the rows of a data set; threads read them where they can, and encode them. */
export async function writeInto(
  dataset: Dataset,
  sink: CheckedSink,
  options: RunOptions,
): Promise<WriteSummary> {
  const ctx = dataset.session.context(options);
  return runInto(await readyPlan(dataset, sink.requiredColumns(), ctx.signal), sink, ctx);
}
