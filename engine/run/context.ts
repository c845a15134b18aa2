import type { EventSink } from '../events.ts';
import type { RunMetrics } from '../metrics.ts';
import type { Executor } from './device.ts';

/** Room on a disk for partitions that memory does not hold. */
export interface SpillSpace {
  /**
   * The path of a file that does not exist yet; the folder is made with the first. Throws UsageError for a
   * folder that cannot be written to.
   */
  newFile(): Promise<string>;
  /**
   * Throws CapacityError with both figures where the disk has less room than that; a disk that does not tell
   * has enough.
   */
  requireRoom(bytes: number): Promise<void>;
}

/** The surroundings of a running pipeline. */
export interface ExecutionContext {
  /** Fires when the user cancels; every stream and every task ends soon after. */
  readonly signal: AbortSignal;
  readonly executor: Executor;
  readonly events: EventSink;
  /** Rows, bytes and time of every operator and stage of this run. */
  readonly metrics: RunMetrics;
  /** Absent where everything stays in memory. */
  readonly spill?: SpillSpace;
}
