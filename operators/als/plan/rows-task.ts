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
 * The task of a round that reads a side's ratings row by row, with the chosen kernel if the plan has none;
 * undefined if none is chosen. `columns`: see RowsTask.
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
