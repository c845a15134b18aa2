import type { TaskHandler } from '../../handler.ts';
import { biasColumn, ratingsOf, rowChunks, rowProblem, rowsOfChunk } from '../row-chunks.ts';
import { requireEquations } from './equation-shape.ts';

/**
 * See `normal-equations` of KernelTasks. The ratings of a row are summed in the workspace, as the task
 * `update` does, and the sums are then added to the row's stored equations.
 */
export const normalEquations: TaskHandler<'normal-equations'> = (scope) => {
  const { from, to, rank, rowStart = 0, implicit } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const [fixed, equations] = [scope.matrix('fixed'), scope.matrix('equations')];
  const isBiased = biasColumn(scope, 'fixedBias') !== undefined;
  const biased = isBiased ? 1 : 0;
  requireEquations('normal-equations', equations, rank, isBiased, to - rowStart);
  const { kernels } = scope;
  const ratings = ratingsOf(scope, scope.params);
  const problem = rowProblem(scope, fixed, implicit !== undefined).set({ theta: fixed.pointer });
  const { address } = problem;
  const workspace = problem.get('workspace');
  const size = fixed.stride * 4;
  let [length, total] = [0, 0];
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, fixed.stride ** 2 / 40, fixed.stride ** 2 / 16)) {
    const { starts, ends, indices } = chunk;
    bytesUp += 8 * chunk.count + 4 * chunk.rows;
    const { values, weights } = ratings(chunk);
    for (const { row, at, n } of rowsOfChunk(chunk, offsets)) {
      if (starts) [length, total] = [0, 0];
      length += n;
      if (isBiased) total += kernels.sumOf(values + at, n);
      problem.set({ indices: indices + at, values: values + at, weights: weights && weights + at, count: n });
      kernels.accumulateRow(address, biased, starts ? 0 : 1);
      if (!ends) continue;
      const target = equations.pointer + (row - rowStart) * equations.stride * 4;
      kernels.addToEquations(target, size, rank, length, total, biased, workspace);
    }
  }
  return { rows: to - from, bytesUp };
};
