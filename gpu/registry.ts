import type { TaskOutcome } from '../engine/task.ts';
import { handlers } from './generated/tasks.ts';
import type { GpuTaskScope } from './handler.ts';

const byName: Readonly<Record<string, ((scope: GpuTaskScope<never>) => Promise<TaskOutcome>) | undefined>> =
  handlers;

/** Runs a task received as a message. */
export async function handle(kernel: string, scope: GpuTaskScope): Promise<TaskOutcome> {
  const handler = byName[kernel];
  if (handler === undefined) throw new Error(`no GPU handler is registered for the task ${kernel}`);
  // A task is built from its kernel's contract, so the scope's parameters have that kernel's type.
  return handler(scope as GpuTaskScope<never>);
}
