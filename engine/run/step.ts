import type { JsonObject } from '../json.ts';
import type { MatrixShape, PartitionRef } from '../partition.ts';
import type { Task } from '../task.ts';
import type { Place } from '../plan/place.ts';

/**
 * The form in which rows of a matrix are sent between devices that have their own memory and the same stride:
 * rows with padding, as in device memory, as float32, as only the float16 copy, or as this copy rounded to 8
 * bits with a scale for each column. The rows stay in host memory until a task of the receiving device reads
 * them, and take no device memory. Devices that compute in host memory send whole matrices without this form.
 */
export type Wire = 'f32' | 'f16' | 'i8';

/**
 * The actions of steps.
 *
 *     task       runs one task, once for each slice: the slice's parameters are added to the task's own
 *     allocate   allocates a matrix, or a vector, at the step's place
 *     move       copies a partition to another place, where it can have another name. `load`: immediately, while
 *                a device otherwise waits with the transfer for the first task that needs it; `wire`: see Wire
 *     hand-out   adds a partition, in host memory, to the results of the run. `given`: a task of the list has
 *                already returned it to the host, and has counted its bytes. `into`: memory that a device which
 *                computes in host memory uses for a matrix instead of new memory
 *     spill      moves partitions of the step's place to a file, where tasks read them
 *     free       releases partitions at the step's place
 */
export type Action =
  | { readonly kind: 'task'; readonly task: Task; readonly slices: readonly JsonObject[] }
  | { readonly kind: 'allocate'; readonly ref: PartitionRef; readonly shape: MatrixShape }
  | {
      readonly kind: 'move';
      readonly ref: PartitionRef;
      readonly from: Place;
      readonly to: Place;
      readonly as: PartitionRef;
      readonly load: boolean;
      readonly wire?: Wire;
    }
  | {
      readonly kind: 'hand-out';
      readonly ref: PartitionRef;
      readonly given: boolean;
      readonly into?: Float32Array;
    }
  | { readonly kind: 'spill'; readonly refs: readonly PartitionRef[] }
  | { readonly kind: 'free'; readonly refs: readonly PartitionRef[] };

/**
 * One action at one place: plain data, made by pure functions, executed by `runSteps`.
 *
 * A slice is not a part. A part of a data set has a place, a version and memory; a slice is a range of a
 * part's rows, for one thread. All slices of a step must end before a step that depends on it starts. So the
 * number of edges grows with the number of steps, not of slices.
 */
export interface Step {
  /** Position in the list of steps. */
  readonly id: number;
  /** The plan's name of the stage, under which measures are kept. */
  readonly stage: string;
  readonly at: Place;
  /**
   * Earlier steps of the same place. On a device that works in order it is enough that they have been sent;
   * on other devices they must have ended.
   */
  readonly after: readonly number[];
  /** Steps that must have ended before this one starts. */
  readonly ended: readonly number[];
  readonly do: Action;
}

/**
 * The way in which a task uses a partition.
 *
 *     read     the contents stay as they are
 *     write    the task writes a new version, whole or its own share of it
 *     alone    this task changes it in place, and no other task uses it at the same time
 *     shared   all slices of the task change it in place at the same time, without locks (Hogwild!)
 */
export type How = 'read' | 'write' | 'alone' | 'shared';

/**
 * The use that each task makes of its inputs and outputs, by the task's names for them. `name.*` means
 * name.0, name.1, ...
 */
export type TaskContracts = Readonly<Record<string, Readonly<Record<string, How>>>>;
