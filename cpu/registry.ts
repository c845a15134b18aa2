import type { TaskOutcome } from '../engine/task.ts';
import { handlers } from './generated/tasks.ts';
import type { TaskHandler, TaskScope } from './handler.ts';

const rest: TaskHandler<'rest'> = () => ({ rows: 0 });

const byName: Readonly<Record<string, ((scope: TaskScope<never>) => TaskOutcome) | undefined>> = {
  rest,
  ...handlers,
};

/** The handler of a task received as a message; undefined for a task that this device does not have. */
export function handlerOf(kernel: string): ((scope: TaskScope) => TaskOutcome) | undefined {
  // The cast is safe: a task's parameters were checked against its kernel's types where it was built.
  return byName[kernel] as ((scope: TaskScope) => TaskOutcome) | undefined;
}
