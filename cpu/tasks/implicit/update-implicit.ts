import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { exactSolverOf, methodOf } from '../solvers.ts';
import { isFar, lastObjective, rowChunks, runningSum } from '../row-chunks.ts';
import { weighedChunk, WORKSPACE_BYTES, workspaceOf } from './weighed-chunk.ts';

/**
 * See `update-implicit` of KernelTasks. The ratings of a row that is longer than a chunk are added to A chunk
 * by chunk. After its last chunk the row is solved from A.
 */
export const updateImplicit: TaskHandler<'update-implicit'> = (scope) => {
  const { from, to, rank, cgBelow, cgSteps, settles = false, anchored = false } = scope.params;
  const exact = exactSolverOf(scope.params);
  const anchor = anchored ? 1 : 0;
  const block = scope.partition('block');
  const shifts = scope.partition('shifts').columns.values as Float32Array;
  const [fixed, gram] = [scope.matrix('fixed'), scope.matrix('gram').pointer];
  const [output, previous] = [scope.matrix('factors'), scope.matrix('previous')];
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const size = output.stride * 4;
  const work = output.stride ** 2 / 40;
  const objective = runningSum(scope);
  const solve = sumsSolver(scope);
  let badRow = -1;
  let length = 0;
  let bytesUp = 0;
  // The cost of a row, in addition to its ratings, is a product with G in every CG step.
  for (const chunk of rowChunks(scope, block, from, to, work, work * output.stride * exact.factorizations)) {
    const { row, rows, count, indices } = chunk;
    const { targets, weights, shiftsAt } = weighedChunk(scope, scope.params, chunk, shifts);
    const [target, start] = [output.pointer + row * size, previous.pointer + row * size];
    bytesUp += 8 * count + 8 * rows;
    let bad = -1;
    if (chunk.starts && chunk.ends) {
      bad = kernels.updateRowsImplicit(
        fixed.pointer,
        size,
        rank,
        gram,
        chunk.offsets,
        indices,
        targets,
        weights,
        rows,
        shiftsAt,
        target,
        start,
        cgBelow,
        cgSteps,
        settles ? 1 : 0,
        exact.method,
        anchor,
        workspace,
        WORKSPACE_BYTES,
        objective.address,
        isFar(fixed),
      );
    } else {
      length = chunk.starts ? count : length + count;
      const more = chunk.starts ? 0 : 1;
      kernels.accumulateImplicit(fixed.pointer, size, indices, targets, weights, count, more, workspace);
      if (!chunk.ends) continue;
      if (!solve(row, length)) bad = 0;
      objective.view[0] += lastObjective(scope, workspace, size);
    }
    if (bad >= 0 && badRow < 0) badRow = row + bad;
  }
  return { rows: to - from, bytesUp, values: { badRow, objective: objective.view[0] } };
};

/**
 * Returns the function that solves a row of n ratings from the sums of A and b over these ratings, which are
 * in the workspace. It first adds G and the row's shift to A. It returns 0 if the factors are not finite.
 */
function sumsSolver(scope: ScopeOf<'update-implicit'>): (row: number, n: number) => number {
  const { kernels, params } = scope;
  const shifts = scope.partition('shifts').columns.values as Float32Array;
  const [output, previous] = [scope.matrix('factors'), scope.matrix('previous')];
  const [gram, workspace] = [scope.matrix('gram').pointer, workspaceOf(scope)];
  const size = output.stride * 4;
  return (row, n) =>
    kernels.solveAccumulatedImplicit(
      size,
      params.rank,
      gram,
      shifts[row],
      params.anchored ? 1 : 0,
      output.pointer + row * size,
      previous.pointer + row * size,
      methodOf(n, params),
      params.cgSteps,
      workspace,
    );
}
