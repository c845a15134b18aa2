import { RunMetrics } from '../../engine/metrics.ts';
import type { MatrixShape, Partition, PartitionRef } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { Slice } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { Step } from '../../engine/run/step.ts';
import type { Task } from '../../engine/task.ts';
import type { Rows } from './task-types.ts';
import { contracts, type KernelName, type KernelTasks, type TaskOf, type ValuesOf } from './tasks.ts';

/**
 * Runs independent tasks of one stage on a device, and returns their values in task order. `onDone` is called
 * with the number of tasks that have ended.
 */
export async function runTasks<K extends KernelName>(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  tasks: readonly TaskOf<K>[],
  onDone?: (finished: number) => void,
): Promise<ValuesOf<K>[]> {
  const steps = tasks.map((task, id): Step => ({
    id,
    stage,
    at,
    after: [],
    ended: [],
    do: { kind: 'task', task, slices: [{}] },
  }));
  const results = await runSteps(steps, ctx, { onProgress: onDone });
  return results.of(stage) as ValuesOf<K>[];
}

interface OneTask {
  /** Inputs of this thread: stored at the device before the task, and freed after it. */
  readonly given?: readonly (readonly [PartitionRef, Partition])[];
  /** Matrices that the task fills: allocated before it. */
  readonly allocates?: readonly (readonly [PartitionRef, MatrixShape])[];
  /** Outputs that are returned to this thread, and freed at the device. */
  readonly handsOut?: readonly PartitionRef[];
  /** Further partitions to free after the task. */
  readonly frees?: readonly PartitionRef[];
}

/** Runs one task on a device. Returns its values, and the outputs that it hands out. */
export async function runTask<K extends KernelName>(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  task: TaskOf<K>,
  { given = [], allocates = [], handsOut = [], frees = [] }: OneTask = {},
): Promise<{ readonly values: ValuesOf<K>; readonly handed: readonly Partition[] }> {
  const steps = new StepList(contracts);
  for (const [ref, shape] of allocates) steps.allocate(stage, at, ref, shape);
  const id = steps.task(stage, at, task as Task);
  for (const ref of handsOut) steps.handOut(stage, ref, at, id);
  steps.free(stage, at, [...given.map(([ref]) => ref), ...handsOut, ...frees]);
  const results = await runSteps(steps.steps, ctx, {
    given: given.map(([ref, partition]) => [ref, partition, at]),
  });
  return { values: results.of(stage)[0] as ValuesOf<K>, handed: results.handed };
}

/**
 * Runs independent tasks, and returns all their outputs, task by task; they are freed at the device. `given`: inputs
 * of this thread, stored at the device before the tasks and freed after them.
 */
export async function outputsOf<K extends KernelName>(
  ctx: ExecutionContext,
  stage: string,
  at: Place,
  tasks: readonly TaskOf<K>[],
  given: readonly (readonly [PartitionRef, Partition])[] = [],
  onProgress?: (finished: number) => void,
): Promise<readonly Partition[]> {
  const steps = new StepList(contracts);
  const refs = tasks.flatMap((task) => {
    const id = steps.task(stage, at, task as Task);
    const own = Object.values((task as Task).outputs);
    for (const ref of own) steps.handOut(stage, ref, at, id);
    return own;
  });
  steps.free(stage, at, [...given.map(([ref]) => ref), ...refs]);
  const put = given.map(([ref, partition]) => [ref, partition, at] as const);
  return (await runSteps(steps.steps, ctx, { given: put, onProgress })).handed;
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
  await runTasks({ ...ctx, metrics: new RunMetrics() }, kernel, place, [task]);
}
