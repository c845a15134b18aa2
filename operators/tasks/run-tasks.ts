import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Slice } from '../../engine/plan/stages.ts';
import type { Place } from '../../engine/plan/place.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import type { Step } from '../../engine/run/step.ts';
import type { StepList } from '../../engine/run/step-list.ts';
import type { Task } from '../../engine/task.ts';
import type { KernelName, KernelTasks, TaskOf, ValuesOf } from './tasks.ts';
import type { Rows } from './task-types.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { ChoosingTasks } from './choosing-tasks.ts';

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

type Compiling = Extract<keyof ChoosingTasks, `compile-${string}`>;

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
