import type { TaskHandler } from '../handler.ts';
import { biasColumn, subtractFixed } from './biases.ts';
import { lastObjective, rowChunks, rowColumn, runningSum, WORKSPACE_BYTES, workspaceOf } from './row-chunks.ts';
import { biasShift, rowShift } from './row-shifts.ts';

/** See `update` of KernelTasks. Rows longer than a chunk are summed piece by piece and solved on their formed A. */
export const update: TaskHandler<'update'> = (scope) => {
  const { from, to, rank, cgBelow, cgSteps, settles = false, mean = 0, nonnegative } = scope.params;
  const block = scope.partition('block');
  const offsets = block.columns.offsets as Int32Array;
  const theta = scope.matrix('fixed').pointer;
  const output = scope.matrix('factors');
  const previous = scope.matrix('previous');
  const [fixedBias, bias] = ['fixedBias', 'bias'].map((name) => biasColumn(scope, name));
  const { kernels } = scope;
  const workspace = workspaceOf(scope);
  const [shifts, ownShifts, biases] = ([0, 1, 2] as const).map((which) => rowColumn(scope, which));
  const [ownAt, biasAt] = bias ? [ownShifts.address, biases.address] : [0, 0];
  const size = output.stride * 4;
  const work = output.stride ** 2 / 40;
  // Non-negative rows take several factorizations, in float64.
  const workPerRow = work * output.stride * (nonnegative ? 5 : 1);
  const objective = runningSum(scope);
  let badRow = -1;
  let [length, total] = [0, 0];
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, block, from, to, work, workPerRow)) {
    const { row, rows, count, indices, values } = chunk;
    const target = output.pointer + row * size;
    const start = previous.pointer + row * size;
    bytesUp += 8 * count + 4 * rows;
    if (fixedBias) subtractFixed(scope, chunk, mean, fixedBias);
    for (let r = 0; r < rows; r++) {
      const n = offsets[row + r + 1] - offsets[row + r];
      shifts.values[r] = rowShift(n, scope.params);
      if (bias) ownShifts.values[r] = biasShift(n, scope.params);
    }
    let bad = -1;
    if (chunk.starts && chunk.ends && nonnegative) {
      bad = kernels.updateRowsNonnegative(theta, size, rank, chunk.offsets, indices, values, rows, shifts.address, ownAt, biasAt, target, start, workspace, objective.address);
    } else if (chunk.starts && chunk.ends) {
      bad = kernels.updateRows(
        theta, size, rank, chunk.offsets, indices, values, rows, shifts.address, ownAt, biasAt, target, start, cgBelow, cgSteps, settles ? 1 : 0, workspace, WORKSPACE_BYTES, objective.address,
      );
    } else {
      length = chunk.starts ? count : length + count;
      total = (chunk.starts ? 0 : total) + (bias ? kernels.sumOf(values, count) : 0);
      kernels.accumulateRow(theta, size, indices, values, count, bias ? 1 : 0, chunk.starts ? 0 : 1, workspace);
      if (chunk.ends) {
        const weight = bias ? length + ownShifts.values[0] : 0;
        const solved = nonnegative
          ? kernels.solveAccumulatedNonnegative(size, rank, shifts.values[0], weight, total, biasAt, target, start, workspace)
          : kernels.solveAccumulated(size, rank, shifts.values[0], weight, total, biasAt, target, start, settles || length >= cgBelow ? 1 : 0, cgSteps, workspace);
        if (!solved) bad = 0;
        objective.view[0] += lastObjective(scope, workspace, size);
      }
    }
    if (bias && chunk.ends) bias.set(biases.values.subarray(0, rows), row);
    if (bad >= 0 && badRow < 0) badRow = row + bad;
  }
  return { rows: to - from, bytesUp, values: { badRow, objective: objective.view[0] } };
};
