import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import { type PlannedRows, readyPlan } from './run-rows.ts';
import type { RunOptions } from './run-session.ts';

/** Writes the rows of a data set; threads read them where they can, and encode them. */
export async function writeInto(
  rows: PlannedRows,
  sink: CheckedSink,
  options: RunOptions,
): Promise<WriteSummary> {
  const { session } = rows;
  const ctx = session.context(options);
  const plan = sink.encoding ? andThen(rows.plan, sink.encoding) : rows.plan;
  return runInto(await readyPlan({ plan, session }, sink.requiredColumns(), ctx.signal), sink, ctx);
}
