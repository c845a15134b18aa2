import { RunMetrics } from '../../engine/metrics.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { runTasks } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';

/**
 * Makes a device with its own memory compile the kernels of a search while the host still prepares the search
 * and uploads its inputs. Nothing waits for this. If it fails, the search compiles its kernels itself.
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
  // Runs with separate metrics: the run's metrics should count only searches.
  runTasks({ ...ctx, metrics: new RunMetrics() }, search, place, [task]).catch(() => undefined);
}
