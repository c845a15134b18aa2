import type { TaskHandler } from '../../handler.ts';

const CHUNK_ROWS = 65_536;

/** See `shifted-norm` of KernelTasks. */
export const shiftedNorm: TaskHandler<'shifted-norm'> = (scope) => {
  const { from, to } = scope.params;
  const shifts = scope.partition('shifts').columns.values as Float32Array;
  const { pointer, stride } = scope.matrix('factors');
  const sum = scope.scratch;
  const shiftsAt = sum + 64;
  const sumView = new Float64Array(scope.memory.buffer, sum, 1).fill(0);
  const shiftsView = new Float32Array(scope.memory.buffer, shiftsAt, CHUNK_ROWS);
  for (let row = from; row < to && !scope.cancelled(); row += CHUNK_ROWS) {
    const end = Math.min(row + CHUNK_ROWS, to);
    shiftsView.set(shifts.subarray(row, end));
    scope.kernels.addShiftedNorms(pointer + row * stride * 4, stride * 4, shiftsAt, end - row, sum);
  }
  return { rows: to - from, bytesUp: 4 * (to - from), values: { sum: sumView[0] } };
};
