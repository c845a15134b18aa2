import type { TaskHandler } from '../handler.ts';

const CHUNK_ROWS = 65_536;

/** See `weighted-norm` of KernelTasks. Only the block's offsets are read. */
export const weightedNorm: TaskHandler<'weighted-norm'> = (scope) => {
  const { from, to } = scope.params;
  const offsets = scope.partition('block').columns.offsets as Int32Array;
  const factors = scope.matrix('factors');
  const size = factors.stride * 4;
  const sum = scope.scratch;
  const offsetsAt = sum + 64;
  const sumView = new Float64Array(scope.memory.buffer, sum, 1).fill(0);
  const offsetsView = new Int32Array(scope.memory.buffer, offsetsAt, CHUNK_ROWS + 1);
  for (let row = from; row < to && !scope.cancelled(); row += CHUNK_ROWS) {
    const end = Math.min(row + CHUNK_ROWS, to);
    offsetsView.set(offsets.subarray(row, end + 1));
    scope.kernels.addWeightedNorms(factors.pointer + row * size, size, offsetsAt, end - row, sum);
  }
  return { rows: to - from, bytesUp: 4 * (to - from), values: { sum: sumView[0] } };
};
