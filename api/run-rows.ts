import { readSplit } from '../connectors/read-split.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { executePlan, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { optimize } from '../operators/dataflow/optimize.ts';
import { ExchangeRoom } from '../operators/exchange/exchange-room.ts';
import { inThreads } from '../operators/pipeline/rows-of-splits.ts';
import type { Session } from './session.ts';
import { dataBytes } from './training/plans/memory-budget.ts';

/**
 * The share of the budget, without what the process and its threads take, that exchanges hold in memory. Tasks
 * need the rest, for rows and for tables of keys.
 */
const EXCHANGE_SHARE = 1 / 3;

const rooms = new WeakMap<Session, ExchangeRoom>();

/** The host memory of a session's exchanges. */
export function exchangeRoomOf(session: Session): ExchangeRoom {
  const known = rooms.get(session);
  if (known !== undefined) return known;
  // Rows whose reading began before the session closed are read to their end, without exchanges.
  if (session.closed) return new ExchangeRoom(0);
  // A session without devices has no threads, and no exchanges.
  const workers = session.context().executor.devices.length === 0 ? 0 : session.workers;
  const { memoryBudget } = session;
  const room = new ExchangeRoom(EXCHANGE_SHARE * dataBytes({ memoryBudget, workers }));
  rooms.set(session, room);
  return room;
}

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
  return inThreads(await optimize(plan, { columns }, signal), {
    readHere: readSplit,
    splitBytes: session.splitBytes,
    room: exchangeRoomOf(session),
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
