import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink } from '../../engine/stream/operator.ts';

export interface WriteSummary {
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
}

/**
 * The parts of the execution context that a sink uses. Without `executor`, the calling thread encodes the
 * rows.
 */
export type WritingContext = Pick<ExecutionContext, 'signal' | 'events'> &
  Partial<Pick<ExecutionContext, 'executor' | 'metrics'>>;

/** A sink of files. */
export interface CheckedSink extends Sink<WriteSummary> {
  /** Throws UsageError when the output may not be written, before any work is done. */
  check(): Promise<void>;
}
