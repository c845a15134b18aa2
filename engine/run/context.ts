import type { EventSink } from '../events.ts';
import type { RunMetrics } from '../metrics.ts';
import type { Executor } from './device.ts';

/** The environment of a running pipeline. */
export interface ExecutionContext {
  /** Fires when the user cancels or the session closes; every stream and task ends soon after. */
  readonly signal: AbortSignal;
  /** Registers work that the session waits for when it closes; returns the work. Absent outside a session. */
  readonly follow?: <Result>(work: Promise<Result>) => Promise<Result>;
  readonly executor: Executor;
  readonly events: EventSink;
  /** Rows, bytes and time of every operator and stage of this run. */
  readonly metrics: RunMetrics;
  /** The same object in all runs that must read the same versions of files; default: the metrics of each run. */
  readonly command?: object;
  /** The stage of the run's graph that the work belongs to, for the trace. */
  readonly within?: WorkingStage;
}

export interface WorkingStage {
  /** Absent outside a graph. */
  readonly name?: string;
  /** True for speculative work; see Scope.speculate. */
  readonly speculative?: boolean;
}

/** Runs work that the context's session waits for when it closes. */
export function followed<Result>({ follow }: ExecutionContext, work: () => Promise<Result>): Promise<Result> {
  return follow === undefined ? work() : follow(work());
}

/** The context for work that may turn out to be unnecessary: a trace marks its steps. */
export function onSpeculation(ctx: ExecutionContext): ExecutionContext {
  return { ...ctx, within: { ...ctx.within, speculative: true } };
}
