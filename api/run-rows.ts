import { readSplit } from '../connectors/read-split.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { executePlan, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { optimize } from '../operators/dataflow/optimize.ts';
import { inThreads } from '../operators/pipeline/rows-of-splits.ts';
import type { Session } from './session.ts';

/** Rows that are to be read. */
interface Planned {
  readonly plan: LogicalPlan;
  readonly session: Session;
}

/** The optimized plan, whose splits are read by the threads. */
export async function readyPlan(
  { plan, session }: Planned,
  columns: readonly string[] | undefined,
  signal: AbortSignal | undefined,
): Promise<LogicalPlan> {
  const { splitBytes, exchangeRoom } = session;
  return inThreads(await optimize(plan, { columns }, signal), {
    readHere: readSplit,
    splitBytes,
    room: exchangeRoom,
  });
}

/** The rows of a plan, batch by batch. */
export async function runRows(
  planned: Planned,
  columns: readonly string[] | undefined,
  ctx: ExecutionContext,
): Promise<BatchStream> {
  return executePlan(await readyPlan(planned, columns, ctx.signal), ctx, columns);
}
