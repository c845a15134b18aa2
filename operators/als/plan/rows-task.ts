import type { Stage } from '../../../engine/plan/stages.ts';
import type { KernelChoice, RowsTask } from '../../tasks/tasks.ts';
import { kernelOf } from './half-iteration.ts';
import type { Side } from './grid.ts';

const kernels: readonly string[] = [
  'update',
  'update-implicit',
  'normal-equations',
] satisfies RowsTask['kernel'][];

/**
 * Finds the task of a round (one iteration's stages) that reads the ratings sorted by `side` row by row, so
 * that a device can prepare for it. `choice` is its kernel if the plan has none. Returns undefined if neither
 * has one. `columns`: number of rows of the other side.
 */
export function rowsTaskOf(
  round: readonly Stage[],
  side: Side,
  columns: number,
  choice?: KernelChoice,
): RowsTask | undefined {
  const ratings = side === 'users' ? 'ratings-by-user' : 'ratings-by-item';
  for (const { work } of round) {
    const found =
      work.kind === 'tasks' || work.kind === 'blocks'
        ? work.tasks.find(({ kernel, uses }) => kernels.includes(kernel) && uses.block === ratings)
        : undefined;
    if (found === undefined) continue;
    const params = { ...found.params, ...kernelOf(choice) };
    // The plan already has the kernel among its tasks' parameters.
    return 'variant' in params
      ? ({
          kernel: found.kernel,
          params,
          biases: found.uses.fixedBias !== undefined,
          columns,
        } as unknown as RowsTask)
      : undefined;
  }
  return undefined;
}
