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
  // A task is built from its kernel's contract, so its parameters have that kernel's type.
  return byName[kernel] as ((scope: TaskScope) => TaskOutcome) | undefined;
}
