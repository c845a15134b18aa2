import { RunMetrics } from '../../engine/metrics.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runTasks } from './run-tasks.ts';
import type { ChoosingTasks } from './choosing-tasks.ts';
import type { TaskOf } from './tasks.ts';

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
