import type { TaskHandler } from '../handler.ts';
import { biasColumn, splitBias, startWithBias, subtractFixed } from './biases.ts';
import { rowChunks, WORKSPACE_BYTES, workspaceOf } from './row-chunks.ts';

/** See `update` of KernelTasks. Rows longer than a chunk are summed piece by piece and solved on their formed A. */
export const update: TaskHandler<'update'> = (scope) => {
  const { from, to, rank, lambda, cgBelow, cgSteps, mean = 0, nonnegative } = scope.params;
  const block = scope.partition('block');
  const theta = scope.matrix('fixed').pointer;
  const output = scope.matrix('factors');
  const [fixedBias, previousBias, bias] = ['fixedBias', 'previousBias', 'bias'].map((name) => biasColumn(scope, name));
  if (previousBias) startWithBias(scope, scope.matrix('previous'), output, previousBias, rank - 1, from, to);
  const previous = previousBias ? output : scope.matrix('previous');
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const size = output.stride * 4;
  const work = output.stride ** 2 / 40;
  // Non-negative rows take several factorizations, in float64.
  const workPerRow = work * output.stride * (nonnegative ? 5 : 1);
  const free = bias ? 1 : 0;
  let badRow = -1;
  let length = 0;
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, work, workPerRow)) {
    const { row, rows, count, indices, values } = chunk;
    const target = output.pointer + row * size;
    const start = previous.pointer + row * size;
    bytesUp += 8 * count + 4 * rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    let bad = -1;
    if (chunk.starts && chunk.ends && nonnegative) {
      bad = kernels.updateRowsNonnegative(theta, size, rank, free, chunk.offsets, indices, values, rows, lambda, target, start, workspace);
    } else if (chunk.starts && chunk.ends) {
      bad = kernels.updateRows(
        theta, size, rank, chunk.offsets, indices, values, rows, lambda, target, start, cgBelow, cgSteps, workspace, WORKSPACE_BYTES,
      );
    } else {
      length = chunk.starts ? count : length + count;
      kernels.accumulateRow(theta, size, indices, values, count, chunk.starts ? 0 : 1, workspace);
      if (chunk.ends) {
        const shift = lambda * length;
        const solved = nonnegative
          ? kernels.solveAccumulatedNonnegative(size, rank, free, shift, target, start, workspace)
          : kernels.solveAccumulated(size, rank, shift, target, start, length >= cgBelow ? 1 : 0, cgSteps, workspace);
        if (!solved) bad = 0;
      }
    }
    if (bad >= 0 && badRow < 0) badRow = row + bad;
  }
  if (bias) splitBias(scope, output, bias, rank - 1, from, to);
  return { rows: to - from, bytesUp, values: { badRow } };
};
