import type { ExecutionContext } from '../engine/operator.ts';
import type { Place } from '../engine/run/place.ts';
import { runSteps } from '../engine/run/run-steps.ts';
import type { Step } from '../engine/run/step.ts';
import type { KernelName, TaskOf, ValuesOf } from './tasks.ts';

/**
 * Runs tasks that are independent of each other, and gives their values in task order. `onDone` hears the number of
 * tasks that have ended.
 */
export async function runTasks<K extends KernelName>(ctx: ExecutionContext, stage: string, at: Place, tasks: readonly TaskOf<K>[], onDone?: (finished: number) => void): Promise<ValuesOf<K>[]> {
  const steps = tasks.map((task, id): Step => ({ id, stage, at, after: [], ended: [], do: { kind: 'task', task, slices: [{}] } }));
  const results = await runSteps(steps, ctx, { onProgress: onDone });
  return results.of(stage) as ValuesOf<K>[];
}
