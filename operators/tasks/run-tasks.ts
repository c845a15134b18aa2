import { RunMetrics } from '../../engine/metrics.ts';
import {
  dataSetName,
  type MatrixShape,
  type Partition,
  type PartitionRef,
  partitionRef,
} from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { Slice } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { type Given, runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import { StepList, type TaskOptions } from '../../engine/run/step-list.ts';
import type { Task } from '../../engine/task.ts';
import type { Rows } from './task-types.ts';
import { contracts, type KernelName, type KernelTasks, type TaskOf, type ValuesOf } from './tasks.ts';

/**
 * Tasks of one stage on one device, by default the CPU. The partitions that it sends, makes or hands out are freed
 * at its end.
 */
export class TaskRun {
  readonly steps = new StepList(contracts);
  readonly stage: string;
  readonly at: Place;
  readonly #ctx: ExecutionContext;
  readonly #name: string;
  readonly #given: Given[] = [];
  readonly #frees = new Set<PartitionRef>();

  constructor(ctx: ExecutionContext, stage: string, at = hostDevice(ctx.executor).info.place) {
    [this.#ctx, this.stage, this.at, this.#name] = [ctx, stage, at, dataSetName(stage)];
  }

  /** The name of a partition, which no other run uses. */
  ref(part: string, partition = 0): PartitionRef {
    return partitionRef(`${this.#name}/${part}`, partition);
  }

  /** Sends a partition of this thread to the device, under its own name or a new one. */
  send(part: string | PartitionRef, partition: Partition): PartitionRef {
    const ref = typeof part === 'string' ? this.ref(part) : part;
    this.#given.push([ref, partition, this.at]);
    return this.free(ref);
  }

  /** Allocates a matrix. */
  make(ref: PartitionRef, shape: MatrixShape): PartitionRef {
    this.keep(ref, shape);
    return this.free(ref);
  }

  /** Allocates a matrix that stays after the run. */
  keep(ref: PartitionRef, shape: MatrixShape): void {
    this.steps.allocate(this.stage, this.at, ref, shape);
  }

  /** Adds a task, and returns the number of its step. */
  task<K extends KernelName>(task: TaskOf<K>, options?: TaskOptions): number {
    return this.steps.task(this.stage, this.at, task as Task, options);
  }

  /** Adds a task that runs once for each slice, all at the same time. */
  sliced<K extends RangeKernel>(task: WholeTask<K>, slices: readonly Slice[]): void {
    addSliced(this.steps, this.stage, this.at, task, slices);
  }

  /** Returns a partition to this thread. `by`: see StepList. */
  handOut(ref: PartitionRef, by?: number | Float32Array): void {
    this.steps.handOut(this.stage, ref, this.at, by);
    this.free(ref);
  }

  /** Frees a partition at the end. */
  free(ref: PartitionRef): PartitionRef {
    this.#frees.add(ref);
    return ref;
  }

  /** Runs the tasks. `onProgress` gets the number of ended slices, and of all. */
  async end(onProgress?: (finished: number, of: number) => void): Promise<StepResults> {
    this.steps.free(this.stage, this.at, [...this.#frees]);
    return runSteps(this.steps.steps, this.#ctx, { given: this.#given, onProgress });
  }

  /** Like `end`; returns the values of the tasks of a kernel. */
  async values<K extends KernelName>(kernel: K): Promise<readonly ValuesOf<K>[]> {
    return valuesOfStage(await this.end(), this.stage, kernel);
  }
}

interface OneTask {
  /** Inputs of this thread: stored at the device before the task, and freed after it. */
  readonly given?: readonly (readonly [PartitionRef, Partition])[];
  /** Outputs that are returned to this thread, and freed at the device. */
  readonly handsOut?: readonly PartitionRef[];
}

/** Runs one task on a device. Returns its values, and the outputs that it hands out. */
export async function runTask<K extends KernelName>(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  task: TaskOf<K>,
  { given = [], handsOut = [] }: OneTask = {},
): Promise<{ readonly values: ValuesOf<K>; readonly handed: readonly Partition[] }> {
  const run = new TaskRun(ctx, stage, at);
  for (const [ref, partition] of given) run.send(ref, partition);
  const id = run.task(task);
  for (const ref of handsOut) run.handOut(ref, id);
  const results = await run.end();
  return { values: results.of(stage)[0] as ValuesOf<K>, handed: results.handed };
}

/** Runs independent tasks, and returns all their outputs, task by task; they are freed at the device. */
export async function outputsOf<K extends KernelName>(
  run: TaskRun,
  tasks: readonly TaskOf<K>[],
  onProgress?: (finished: number) => void,
): Promise<readonly Partition[]> {
  for (const task of tasks) {
    const id = run.task(task);
    for (const ref of Object.values((task as Task).outputs)) run.handOut(ref, id);
  }
  return (await run.end(onProgress)).handed;
}

/** A task that replaces a chunk of data, and what may be freed after it or moved to a file. */
export interface ReplacingTask<One extends Task = Task> {
  readonly task: One;
  readonly frees: readonly PartitionRef[];
  readonly spills?: readonly PartitionRef[];
}

/**
 * Steps with tasks that replace one chunk each. Partitions are freed, and have moved to files, only `ahead` tasks
 * later: tasks that are added after a free wait for it. So enough tasks run, and few chunks are in memory twice.
 */
export function replacingSteps(
  stage: string,
  at: Place,
  tasks: readonly ReplacingTask[],
  ahead: number,
): StepList {
  const steps = new StepList(contracts);
  const spilled: number[] = [];
  for (const [t, { task, spills }] of tasks.entries()) {
    if (t >= ahead) steps.free(stage, at, tasks[t - ahead].frees);
    steps.task(stage, at, task, { ended: t >= ahead ? spilled.slice(t - ahead, t - ahead + 1) : [] });
    if (spills) spilled.push(steps.spill(stage, at, spills));
  }
  steps.free(
    stage,
    at,
    tasks.slice(-ahead).flatMap(({ frees }) => frees),
  );
  return steps;
}

export type RangeKernel = {
  [K in KernelName]: KernelTasks[K]['params'] extends Rows ? K : never;
}[KernelName];

/** A task without its range of rows, which is added for each slice (row range). */
export type WholeTask<K extends RangeKernel> = Omit<TaskOf<K>, 'params'> & {
  readonly params: Omit<TaskOf<K>['params'], 'from' | 'to'>;
};

/**
 * Adds a step that runs a task once for each slice (row range), all at the same time. Returns the number of
 * the step.
 */
export function addSliced<K extends RangeKernel>(
  steps: StepList,
  stage: string,
  at: Place,
  task: WholeTask<K>,
  slices: readonly Slice[],
): number {
  return steps.task(stage, at, task as Task, {
    slices: slices.map(({ from, to, params }) => ({ from, to, ...params })),
  });
}

/** The values that a stage's tasks of one kernel returned, in the order of steps, then of slices. */
export function valuesOfStage<K extends KernelName>(
  results: Pick<StepResults, 'of'>,
  stage: string,
  kernel: K,
): readonly ValuesOf<K>[] {
  return results.of(stage, kernel) as readonly ValuesOf<K>[];
}

type Compiling = KernelName & `compile-${string}`;

/**
 * Makes a device start to compile kernels that later tasks will need. The task has separate metrics: the
 * run's metrics should count only its work.
 */
export async function announceKernels<K extends Compiling>(
  kernel: K,
  params: TaskOf<K>['params'],
  place: Place,
  ctx: ExecutionContext,
): Promise<void> {
  const task = { kernel, inputs: {}, outputs: {}, params } as TaskOf<K>;
  await runTask({ ...ctx, metrics: new RunMetrics() }, kernel, place, task);
}
