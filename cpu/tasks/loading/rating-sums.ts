import type { TaskHandler, TaskScope } from '../../handler.ts';

/** Rows between two looks at the cancel flag. */
const CHUNK_ROWS = 8_192;

/** See `sum-ratings` of KernelTasks. Squares of rows are put together as in Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances. */
export const sumRatings: TaskHandler<'sum-ratings'> = (scope) => {
  const { from, to } = scope.params;
  const { offsets, values } = blockOf(scope);
  const rowSums = scope.partition('rowSums').columns.sums as Float64Array;
  let [sum, least, most, whole] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, true];
  let [count, mean, squares] = [0, 0, 0];
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    const [first, end] = [offsets[row], offsets[row + 1]];
    if (first === end) continue;
    let ofRow = 0;
    for (let k = first; k < end; k++) {
      const value = values[k];
      ofRow += value;
      if (value < least) least = value;
      if (value > most) most = value;
      whole &&= Math.trunc(value) === value;
    }
    const rowMean = ofRow / (end - first);
    let apart = 0;
    for (let k = first; k < end; k++) apart += (values[k] - rowMean) ** 2;
    const between = rowMean - mean;
    const before = count;
    count += end - first;
    mean += (between * (end - first)) / count;
    squares += apart + (between * between * before * (end - first)) / count;
    sum += ofRow;
    rowSums[row] += ofRow;
  }
  return { rows: offsets[to] - offsets[from], values: { sum, least, most, whole, count, mean, squares } };
};

/** See `damped-means` of KernelTasks. */
export const dampedMeans: TaskHandler<'damped-means'> = (scope) => {
  const { from, to, mean, damping } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const columns = scope.partition('columnMeans').columns.values as Float32Array;
  const rows = scope.partition('rowMeans').columns.values as Float32Array;
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    const [first, end] = [offsets[row], offsets[row + 1]];
    let left = 0;
    for (let k = first; k < end; k++) left += values[k] - mean - columns[indices[k]];
    rows[row] = left / (end - first + damping);
  }
  return { rows: offsets[to] - offsets[from] };
};

function blockOf(scope: TaskScope<{ from: number; to: number }>): { readonly offsets: Int32Array; readonly indices: Uint32Array; readonly values: Float32Array } {
  return scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
}
