/**
 * The tasks of a CPU device that read or write files. A thread imports this module, and each task's own
 * module, when it first needs them.
 */
import type { GivenHandlers } from '../../cpu/handler.ts';

const reading = () => import('./read-ratings-task.ts');

export const handlers: GivenHandlers = {
  'encode-rows': async (scope) =>
    (await import('../../connectors/output/encode-rows.ts')).encodeRowsTask(scope),
  'read-ratings': async (scope) => (await reading()).readRatingsTask(scope),
  'read-rows': async (scope) => (await import('./read-rows-task.ts')).readRowsTask(scope),
  'write-factors': async (scope) =>
    (await import('../../connectors/model/write-factors.ts')).writeFactorsTask(scope),
};

/** See GivenTasks. */
export async function load(kernel: string): Promise<void> {
  if (kernel === 'read-ratings') await reading();
}
