import type { EventSink } from '../events.ts';
import type { RunMetrics } from '../metrics.ts';
import type { Executor } from './device.ts';

/** The surroundings of a running pipeline. */
export interface ExecutionContext {
  /** Fires when the user cancels; every stream and every task ends soon after. */
  readonly signal: AbortSignal;
  readonly executor: Executor;
  readonly events: EventSink;
  /** Rows, bytes and time of every operator and stage of this run. */
  readonly metrics: RunMetrics;
}
