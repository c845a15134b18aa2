import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import type { Dataset } from './dataset.ts';
import { readyPlan } from './run-rows.ts';
import type { RunOptions } from './session.ts';

/** Writes the rows of a data set; threads read them where they can, and encode them. */
export async function writeInto(
  dataset: Dataset,
  sink: CheckedSink,
  options: RunOptions,
): Promise<WriteSummary> {
  const { session } = dataset;
  const ctx = session.context(options);
  const plan = sink.encoding ? andThen(dataset.plan, sink.encoding) : dataset.plan;
  return runInto(await readyPlan({ plan, session }, sink.requiredColumns(), ctx.signal), sink, ctx);
}
