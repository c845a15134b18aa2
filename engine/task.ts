import type { JsonObject } from './json.ts';
import type { Partition, PartitionRef } from './partition.ts';
import type { DeviceSpan } from './trace/trace.ts';

/**
 * A unit of work for one device, as plain JSON.
 *
 * Contract: a task is pure. It names its kernel, its inputs and outputs by partition and version, and its
 * parameters, and depends on nothing else; the partitions on a device are only a cache. So it can be run
 * again, or elsewhere, with the same outcome bit for bit. Inputs are never written; an output is a new
 * version (a range of its rows where `params` say so).
 */
export interface Task<Name extends string = string, Params extends JsonObject = JsonObject> {
  readonly kernel: Name;
  readonly inputs: Readonly<Record<string, PartitionRef>>;
  readonly outputs: Readonly<Record<string, PartitionRef>>;
  readonly params: Params;
  /** Asks for the time at which it ended by the device's clock, see TaskResult. */
  readonly clocked?: boolean;
}

/** The report of every task. */
export interface TaskMetrics {
  /** Rows or pairs handled; the unit is the kernel's. */
  readonly rows: number;
  /** Bytes copied from shared host memory into the device's memory, and back. */
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly milliseconds: number;
}

export interface TaskResult {
  readonly metrics: TaskMetrics;
  /** Small results by value: sums, counts, the first bad row. */
  readonly values: JsonObject;
  /**
   * Of a clocked task: when its last kernel ended, in milliseconds of the device's own clock, whose zero is
   * unknown; undefined where the device has none.
   */
  readonly ended?: number | undefined;
  /** For a trace: the thread's work on the task, then other work that the device did meanwhile. */
  readonly spans?: readonly DeviceSpan[];
}

/**
 * The result of a handler on the device's side; partitions are stored under the task's outputs of the same
 * names.
 */
export interface TaskOutcome {
  readonly rows: number;
  readonly bytesUp?: number;
  readonly bytesDown?: number;
  readonly values?: JsonObject;
  readonly partitions?: Readonly<Record<string, Partition>>;
  /** Bytes of the device's own memory, now and at most since its last answer. */
  readonly memory?: { readonly now: number; readonly peak: number };
  /**
   * When the last kernel ended, in milliseconds of the device's own clock, whose zero is unknown; undefined where
   * the device has none.
   */
  readonly ended?: number | undefined;
  /** Work for a trace, such as that on files. */
  readonly spans?: readonly DeviceSpan[];
}
