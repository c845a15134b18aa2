import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import type { Sink } from '../engine/stream/operator.ts';
import { type PlannedRows, readyPlan } from './run-rows.ts';
import type { RunOptions } from './run-session.ts';

/** Runs the rows of a data set into a sink; threads read them where they can, and encode them. */
export async function writeInto<Result>(
  rows: PlannedRows,
  sink: Sink<Result>,
  options: RunOptions,
): Promise<Result> {
  const { session } = rows;
  const ctx = session.context(options);
  const plan = sink.encoding ? andThen(rows.plan, sink.encoding) : rows.plan;
  return runInto(await readyPlan({ plan, session }, sink.requiredColumns(), ctx.signal), sink, ctx);
}
