import { RunMetrics } from '../../engine/metrics.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runTasks } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';

/**
 * Starts compiling on a device with memory of its own while the host prepares the search and its inputs go
 * up. Nothing waits for it; the search compiles the kernels itself where this fails.
 */
export function announceSearch(
  search: 'top-n' | 'rank-listed',
  excluding: boolean,
  { place, ownMemory }: DeviceInfo,
  ctx: ExecutionContext,
): void {
  if (!ownMemory) return;
  const task: TaskOf<'compile-search'> = {
    kernel: 'compile-search',
    inputs: {},
    outputs: {},
    params: { search, excluding },
  };
  // Not among the measures of the run, which are of searches alone.
  runTasks({ ...ctx, metrics: new RunMetrics() }, search, place, [task]).catch(() => undefined);
}
