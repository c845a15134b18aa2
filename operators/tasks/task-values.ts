import type { Device } from '../../engine/executor.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import type { KernelName, TaskOf, ValuesOf } from './tasks.ts';

/** Runs one task that is no step of a plan, such as the choice of a kernel, and gives its values. */
export async function valuesOfTask<K extends KernelName>(device: Pick<Device, 'run'>, task: TaskOf<K>, signal?: AbortSignal): Promise<ValuesOf<K>> {
  // A handler is made by its kernel's contract, so these are its values.
  return (await device.run(task, signal)).values as ValuesOf<K>;
}

/** The values of a stage's tasks of one kernel, in the order of steps, then of slices. */
export function valuesOfStage<K extends KernelName>(results: Pick<StepResults, 'of'>, stage: string, kernel: K): readonly ValuesOf<K>[] {
  return results.of(stage, kernel) as readonly ValuesOf<K>[];
}
