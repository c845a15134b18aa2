import type { TaskHandler } from '../handler.ts';
import { biasColumn, subtractBoth } from './biases.ts';
import { rowChunks, workspaceOf } from './row-chunks.ts';

/** See `squared-error` of KernelTasks. All chunks add to the same sum, in row order. */
export const squaredError: TaskHandler<'squared-error'> = (scope) => {
  const { from, to, mean = 0 } = scope.params;
  const block = scope.partition('block');
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const [rowBias, columnBias] = ['rowBias', 'columnBias'].map((name) => biasColumn(scope, name));
  const offsets = block.columns.offsets as Int32Array;
  const size = rowFactors.stride * 4;
  const sums = workspaceOf(scope);
  const view = new Float64Array(scope.memory.buffer, sums, 2).fill(0);
  let count = 0;
  for (const chunk of rowChunks(scope, block, from, to, rowFactors.stride / 8, 1)) {
    if (rowBias && columnBias) subtractBoth(scope, chunk, mean, rowBias, columnBias, offsets);
    const first = rowFactors.pointer + chunk.row * size;
    scope.kernels.addErrors(
      first,
      columnFactors.pointer,
      size,
      chunk.offsets,
      chunk.indices,
      chunk.values,
      chunk.rows,
      sums,
    );
    count += chunk.count;
  }
  return { rows: to - from, bytesUp: 8 * count, values: { squared: view[0], absolute: view[1], count } };
};
