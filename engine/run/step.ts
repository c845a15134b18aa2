import type { JsonObject } from '../json.ts';
import type { MatrixShape, PartitionRef } from '../partition.ts';
import type { Task } from '../task.ts';
import type { Place } from '../plan/place.ts';

/**
 * The form in which rows of a matrix go from one device to another of the same stride: as they lie in its
 * memory, padding too, in float32, or those of the copy of half the width alone. They stay in host memory
 * until a task of the other device reads them, and take no memory there. A device that computes in host
 * memory gives and takes matrices.
 */
export type Wire = 'f32' | 'f16';

/**
 * The actions of steps.
 *
 *     task       runs one task, once for each slice: the slice's parameters join the task's own
 *     allocate   reserves a matrix, or a vector, at the step's place
 *     move       copies a partition from one place to another, under a name of its own there; `load`: at once, where a device
 *                would wait with the transfer for the first task that needs it; `wire`: see Wire
 *     hand-out   gives a partition's host form to the results of the run; `given`: a task of the list gave that form to the host, and
 *                its bytes count there
 *     spill      moves partitions of the step's place to a file, from where tasks read them
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
  | { readonly kind: 'hand-out'; readonly ref: PartitionRef; readonly given: boolean }
  | { readonly kind: 'spill'; readonly refs: readonly PartitionRef[] }
  | { readonly kind: 'free'; readonly refs: readonly PartitionRef[] };

/**
 * One action at one place: plain data, made by pure functions, carried out by `runSteps`.
 *
 * A slice is not a part: a part of a data set has a place, a version and memory; a slice is a range of its
 * rows for one thread. All slices of a step end before anything that depends on the step begins, so that
 * edges are linear in steps.
 */
export interface Step {
  /** Position in the list of steps. */
  readonly id: number;
  /** The plan's name of the stage; measures are kept under it. */
  readonly stage: string;
  readonly at: Place;
  /**
   * Steps of the same place that come first: on a device that works in order they have been sent, elsewhere
   * they have ended.
   */
  readonly after: readonly number[];
  /** Steps that have ended before this one begins. */
  readonly ended: readonly number[];
  readonly do: Action;
}

/**
 * The way in which a task uses a partition that it names.
 *
 *     read     the contents stay as they are
 *     write    a new version, written whole, or the part of it that is this task's own
 *     alone    stepped in place by this task and no other at the same time
 *     shared   stepped in place by all slices of the task at once, without locks (Hogwild!'s contract)
 */
export type How = 'read' | 'write' | 'alone' | 'shared';

/**
 * The uses of every task, by the task's names for its inputs and outputs. `name.*` stands for name.0, name.1,
 * ...
 */
export type TaskContracts = Readonly<Record<string, Readonly<Record<string, How>>>>;
