import { readSplit } from '../connectors/read-split.ts';
import { RowSource } from '../connectors/rows/row-source.ts';
import { UsageError } from '../engine/errors.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { hostDevice } from '../engine/run/devices.ts';
import { collectBytes, COLLECT_SHARE } from '../engine/run/garbage.ts';
import { executePlan, type LogicalPlan, rootSource } from '../engine/stream/logical-plan.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { keepHeapsSmall } from '../engine/threads/collect-garbage.ts';
import { optimize } from '../operators/dataflow/optimize.ts';
import { ExchangeRoom, type ProcessMemory } from '../operators/exchange/exchange-room.ts';
import { inThreads } from '../operators/pipeline/read-in-threads.ts';
import { baseBytes, leastBaseBytes } from '../operators/planner/memory-budget.ts';
import { SCARCE_COLLECT_SHARE } from './devices/open-devices.ts';
import type { RunSession } from './run-session.ts';

/**
 * With a smaller memory budget, threads that run exchanges keep their heaps small and collect garbage early.
 */
const SCARCE_BYTES = 2 ** 31;

/** Part of an exchange's memory that the process's allocator loses to fragmentation. */
const LOST_SHARE = 1 / 6;

const rooms = new WeakMap<RunSession, ExchangeRoom>();

/** The host memory of a session's exchanges. */
export function exchangeRoomOf(session: RunSession): ExchangeRoom {
  const known = rooms.get(session);
  if (known !== undefined) return known;
  // Without devices there are no threads, so rows are never exchanged.
  const workers = session.context().executor.devices.length === 0 ? 0 : session.workers;
  const room = new ExchangeRoom(processMemory(session, workers));
  rooms.set(session, room);
  return room;
}

function processMemory(session: RunSession, workers: number): ProcessMemory {
  const { memoryBudget: budget } = session;
  if (budget >= SCARCE_BYTES)
    return {
      budget,
      process: baseBytes(workers) + collectBytes(budget),
      garbage: LOST_SHARE + 1 / COLLECT_SHARE,
    };
  const waiting = budget / SCARCE_COLLECT_SHARE;
  let saves = false;
  const save = () => {
    if (saves) return;
    saves = true;
    keepHeapsSmall();
    hostDevice(session.context().executor).saveMemory?.(waiting);
  };
  return { budget, process: leastBaseBytes(workers) + waiting, garbage: LOST_SHARE, save };
}

/** Rows that are to be read. */
export interface PlannedRows {
  readonly plan: LogicalPlan;
  readonly session: RunSession;
}

/** The plan after optimization, prepared so that threads read its splits. */
export async function readyPlan(
  { plan, session }: PlannedRows,
  columns: readonly string[] | undefined,
  signal: AbortSignal | undefined,
): Promise<LogicalPlan> {
  return inThreads(await optimize(plan, { columns }, signal), {
    readHere: readSplit,
    splitBytes: session.splitBytes,
    room: exchangeRoomOf(session),
  });
}

/** The rows of a plan, batch by batch. */
export async function runRows(
  planned: PlannedRows,
  columns: readonly string[] | undefined,
  ctx: ExecutionContext,
): Promise<BatchStream> {
  return executePlan(await readyPlan(planned, columns, ctx.signal), ctx, columns);
}

/** True where the rows can be read more than once. */
export function isReplayable({ plan }: Pick<PlannedRows, 'plan'>): boolean {
  return rootSource(plan).replayable;
}

/**
 * Throws UsageError if the rows can be read only once; `purpose` names the work that reads them several
 * times.
 */
export function requireReplayable({ plan }: Pick<PlannedRows, 'plan'>, purpose: string): void {
  if (rootSource(plan).replayable) return;
  throw new UsageError(`${purpose} reads the rows more than once, but this source can be read only once`, {
    advice:
      rootSource(plan) instanceof RowSource
        ? 'Pass an array, or a function that makes the rows anew: session.fromRows(() => rows)'
        : 'Pass an array of batches, or { replayable: true } when each iteration starts anew',
  });
}
