import type { Device } from '../../../engine/run/device.ts';
import type { KernelName, TaskOf, ValuesOf } from '../../../operators/tasks/tasks.ts';

/** Runs one task that is no step of a plan, such as the choice of a kernel, and gives its values. */
export async function valuesOfTask<K extends KernelName>(
  device: Pick<Device, 'run'>,
  task: TaskOf<K>,
  signal?: AbortSignal,
): Promise<ValuesOf<K>> {
  // A handler is made by its kernel's contract, so these are its values.
  return (await device.run(task, signal)).values as ValuesOf<K>;
}
