import type { Sink } from '../../engine/stream/operator.ts';

export interface WriteSummary {
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
}

/** A sink of files. */
export interface CheckedSink extends Sink<WriteSummary> {
  /** Throws UsageError when the output may not be written, before any work is done. */
  check(): Promise<void>;
}
