import type { TaskOutcome } from '../engine/task.ts';
import type { GpuTaskScope } from './handler.ts';

/** Handlers of tasks by name; each takes the parameters of its own task. */
export type GpuHandlers = Readonly<
  Record<string, ((scope: GpuTaskScope<never>) => Promise<TaskOutcome>) | undefined>
>;

/** Runs a task by its name. */
export type Handle = (kernel: string, scope: GpuTaskScope) => Promise<TaskOutcome>;

/** Runs tasks by these handlers. Tests replace this module: see test/support/devices/poisoned-gpu.ts. */
export function handleBy(handlers: GpuHandlers): Handle {
  return async (kernel, scope) => {
    const handler = handlers[kernel];
    if (handler === undefined) throw new Error(`no GPU handler is registered for the task ${kernel}`);
    // A task is built from its kernel's contract, so the scope's parameters have that kernel's type.
    return handler(scope as GpuTaskScope<never>);
  };
}
