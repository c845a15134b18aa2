import type { CheckedSink, WriteSummary } from '../connectors/output/checked-sink.ts';
import { readSplit } from '../connectors/read-split.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { type LogicalPlan, runInto } from '../engine/stream/logical-plan.ts';
import { readInThreads } from '../operators/split-source.ts';

/** Writes the rows of a plan; threads read them where they can, and encode them. */
export function writeInto(plan: LogicalPlan, sink: CheckedSink, ctx: ExecutionContext): Promise<WriteSummary> {
  return runInto(readInThreads(plan, readSplit), sink, ctx);
}
