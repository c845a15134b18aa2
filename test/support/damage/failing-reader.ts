/** The task of reading, whose thread throws, or ends, at a file of that name. */
import { readRatingsTask } from '../../../api/devices/read-ratings-task.ts';
import type { GivenHandlers } from '../../../cpu/handler.ts';
import type { ReadParams } from '../../../operators/tasks/reading-tasks.ts';

export const handlers: GivenHandlers = {
  'read-ratings': async (scope) => {
    const { splits } = scope.params as ReadParams;
    if (splits.some(({ file }) => file.includes('1-throws'))) throw new TypeError('a mistake in the reader');
    if (splits.some(({ file }) => file.includes('1-ends'))) process.exit(7);
    return readRatingsTask(scope);
  },
};
