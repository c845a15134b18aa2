import type { MatrixView } from '../../handler.ts';

/**
 * Throws if a matrix does not have the columns of stored equations (operators/tasks/equation-tasks.ts), or
 * has less than `last` rows.
 */
export function requireEquations(
  task: string,
  { rows, columns }: MatrixView,
  rank: number,
  biases: boolean,
  last: number,
): void {
  const wanted = (rank * (rank + 1)) / 2 + rank + 1 + (biases ? rank + 1 : 0);
  if (columns !== wanted || rows < last)
    throw new Error(
      `task ${task}: a matrix of ${rows} x ${columns} has no place for equations of ${last} rows and rank ${rank}${biases ? ' with biases' : ''}, ${wanted} columns`,
    );
}
