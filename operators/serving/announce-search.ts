import { RunMetrics } from '../../engine/metrics.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runTasks } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';

/**
 * Starts compiling the search on a device with its own memory, while the host prepares it and uploads its
 * inputs. Nothing waits for this; if it fails, the search compiles its kernels itself.
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
  // Not counted in the run's measures, which are for searches only.
  runTasks({ ...ctx, metrics: new RunMetrics() }, search, place, [task]).catch(() => undefined);
}
