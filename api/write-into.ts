import { andThen, runInto } from '../engine/stream/logical-plan.ts';
import type { Sink } from '../engine/stream/operator.ts';
import { type PlannedRows, readyPlan } from './run-rows.ts';
import type { RunOptions } from './run-session.ts';

/** Writes the rows of a data set to a sink; if possible, threads read and encode them. */
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
