/** The tasks of a CPU device that read or write files: its threads import this module, and those of each task, at the first of them. */
import type { GivenHandlers } from '../../cpu/handler.ts';

export const handlers: GivenHandlers = {
  'read-ratings': async (scope) => (await import('./read-task.ts')).readRatingsTask(scope),
};
