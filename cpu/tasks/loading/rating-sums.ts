import { addValues } from '../../../engine/numbers/add-values.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler, TaskScope } from '../../handler.ts';

/** Rows between two looks at the cancel flag. */
const CHUNK_ROWS = 8_192;

/** Ratings in scratch at a time. */
const PIECE = 1 << 20;

/**
 * See `sum-ratings` of KernelTasks. By kernels, which are compiled once for all threads: each thread would take longer to compile a loop of its own than to run it. Squares of pieces of
 * rows are put together as in Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances.
 */
export const sumRatings: TaskHandler<'sum-ratings'> = (scope) => {
  const { from, to } = scope.params;
  const { kernels, scratch: at } = scope;
  const { offsets, values } = blockOf(scope);
  const rowSums = scope.partition('rowSums').columns.sums as Float64Array;
  const piece = new Float32Array(scope.memory.buffer, at, PIECE);
  const boundsAt = at + 4 * PIECE;
  const bounds = new Float32Array(scope.memory.buffer, boundsAt, 2);
  let [sum, least, most, whole] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, true];
  let [count, mean, squares] = [0, 0, 0];
  let copied = { from: 0, to: 0 };
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    let ofRow = 0;
    for (let first = offsets[row]; first < offsets[row + 1]; first += PIECE) {
      const length = Math.min(PIECE, offsets[row + 1] - first);
      if (first < copied.from || first + length > copied.to) {
        copied = { from: first, to: Math.min(first + PIECE, offsets[to]) };
        piece.set(values.subarray(copied.from, copied.to));
      }
      const address = at + 4 * (first - copied.from);
      const own = kernels.sumOf(address, length);
      whole = kernels.boundsOf(address, length, boundsAt) === 1 && whole;
      least = Math.min(least, bounds[0]);
      most = Math.max(most, bounds[1]);
      const between = own / length - mean;
      squares += kernels.squaresApart(address, length, own / length) + (between * between * count * length) / (count + length);
      count += length;
      mean += (between * length) / count;
      ofRow += own;
    }
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

/** See `sum-columns` of KernelTasks. */
export const sumColumns: TaskHandler<'sum-columns'> = (scope) => {
  const { from, to, columns, mean = 0 } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const rowMeans = scope.hasInput('rowMeans') ? (scope.partition('rowMeans').columns.values as Float32Array) : undefined;
  const [sums, counts] = [sharedArray(Float64Array, columns), sharedArray(Int32Array, columns)];
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    const expected = rowMeans === undefined ? 0 : mean + rowMeans[row];
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      sums[indices[k]] += values[k] - expected;
      counts[indices[k]]++;
    }
  }
  return { rows: offsets[to] - offsets[from], partitions: { sums: { layout: 'column-sums', rows: columns, columns: { sums, counts } } } };
};

/** See `sum-values` of KernelTasks. */
export const sumValues: TaskHandler<'sum-values'> = (scope) => {
  const { from, to, apart } = scope.params;
  return { rows: to - from, values: { sum: addValues(0, (scope.partition('block').columns.values as Float32Array).subarray(from, to), apart) } };
};

/** See `standardize` of KernelTasks. */
export const standardize: TaskHandler<'standardize'> = (scope) => {
  const { from, to, center, deviation } = scope.params;
  const { offsets, values } = blockOf(scope);
  let squares = 0;
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      values[k] = (values[k] - center) / deviation;
      squares += values[k] * values[k];
    }
  }
  return { rows: offsets[to] - offsets[from], values: { squares } };
};

function blockOf(scope: TaskScope<{ from: number; to: number }>): { readonly offsets: Int32Array; readonly indices: Uint32Array; readonly values: Float32Array } {
  return scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
}
