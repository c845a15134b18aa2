import type { JsonObject } from './json.ts';
import type { Partition, PartitionRef } from './partition.ts';
import type { DeviceSpan } from './trace/trace.ts';

/**
 * A unit of work for one device, as plain JSON.
 *
 * Contract: a task is pure. It names its kernel, its inputs and outputs (by partition and version) and its
 * parameters, and depends on nothing else; the partitions on a device are only a cache. So it can be run
 * again, or elsewhere, with bit-identical results. Inputs are never written; an output is a new version (or a
 * range of its rows if `params` say so).
 */
export interface Task<Name extends string = string, Params extends JsonObject = JsonObject> {
  readonly kernel: Name;
  readonly inputs: Readonly<Record<string, PartitionRef>>;
  readonly outputs: Readonly<Record<string, PartitionRef>>;
  readonly params: Params;
  /** Requests the end time by the device's clock; see TaskResult. */
  readonly clocked?: boolean;
}

/** Measures reported for every task. */
export interface TaskMetrics {
  /** Processed rows or pairs; the unit depends on the kernel. */
  readonly rows: number;
  /** Bytes copied from shared host memory to the device's memory, and back. */
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly milliseconds: number;
}

export interface TaskResult {
  readonly metrics: TaskMetrics;
  /** Small results by value: sums, counts, the first bad row. */
  readonly values: JsonObject;
  /**
   * For a clocked task: when its last kernel ended, in milliseconds of the device's own clock, whose zero is
   * arbitrary; undefined if the device has no clock.
   */
  readonly ended?: number | undefined;
  /** For a trace: the thread's work on the task, then other work of the device at that time. */
  readonly spans?: readonly DeviceSpan[];
}

/** The result of a handler on the device; partitions are stored as the task's outputs with the same names. */
export interface TaskOutcome {
  readonly rows: number;
  readonly bytesUp?: number;
  readonly bytesDown?: number;
  readonly values?: JsonObject;
  readonly partitions?: Readonly<Record<string, Partition>>;
  /** Bytes of the device's own memory: now, and the peak since its last reply. */
  readonly memory?: { readonly now: number; readonly peak: number };
  /**
   * When the last kernel ended, in milliseconds of the device's own clock, whose zero is arbitrary; undefined
   * if the device has no clock.
   */
  readonly ended?: number | undefined;
  /** Work for a trace, such as reading files. */
  readonly spans?: readonly DeviceSpan[];
}
