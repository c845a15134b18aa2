import type { EventSink } from '../events.ts';
import type { RunMetrics } from '../metrics.ts';
import type { Executor } from './device.ts';

/**
 * The environment of a running pipeline: how to cancel it, where its tasks run, and who receives its
 * measures.
 */
export interface ExecutionContext {
  /** Aborted when the user cancels or the session closes. Every stream and task then ends soon. */
  readonly signal: AbortSignal;
  /** Registers work that the session waits for when it closes; returns the work. Absent outside a session. */
  readonly follow?: <Result>(work: Promise<Result>) => Promise<Result>;
  readonly executor: Executor;
  readonly events: EventSink;
  /** Rows, bytes and time of every operator and stage of this run. */
  readonly metrics: RunMetrics;
  /**
   * Identifies one command of the user. All runs with the same object here must read the same versions of
   * files. Default: the metrics object, which differs in each run.
   */
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

/** A context for work that may turn out to be unnecessary; a trace marks the steps of such work. */
export function onSpeculation(ctx: ExecutionContext): ExecutionContext {
  return { ...ctx, within: { ...ctx.within, speculative: true } };
}
