import type { EventSink } from '../events.ts';
import type { RunMetrics } from '../metrics.ts';
import type { Executor } from './device.ts';

/** The surroundings of a running pipeline. */
export interface ExecutionContext {
  /** Fires when the user cancels or the session closes; every stream and every task ends soon after. */
  readonly signal: AbortSignal;
  /** Has the session wait for work when it closes, and gives the work back. Absent outside of a session. */
  readonly follow?: <Result>(work: Promise<Result>) => Promise<Result>;
  readonly executor: Executor;
  readonly events: EventSink;
  /** Rows, bytes and time of every operator and stage of this run. */
  readonly metrics: RunMetrics;
  /** The stage of the run's graph that the work belongs to, for the trace. */
  readonly within?: WorkingStage;
}

export interface WorkingStage {
  /** Absent outside of a graph. */
  readonly name?: string;
  /** True for work on a guess; see Scope.speculate. */
  readonly speculative?: boolean;
}

/** Runs work that the session of a context waits for when it closes. */
export function followed<Result>({ follow }: ExecutionContext, work: () => Promise<Result>): Promise<Result> {
  return follow === undefined ? work() : follow(work());
}

/** The context of work that is begun before it is known to be needed: its steps are marked in the trace. */
export function onSpeculation(ctx: ExecutionContext): ExecutionContext {
  return { ...ctx, within: { ...ctx.within, speculative: true } };
}
