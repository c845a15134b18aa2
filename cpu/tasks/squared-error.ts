import { blockOf, type TaskHandler, type TaskScope, valuesOf } from '../handler.ts';
import { type RowChunk, rowChunks, weighedRatings, workspaceOf } from './row-chunks.ts';

/** See `squared-error` of KernelTasks. All chunks add to the same sum, in row order. */
export const squaredError: TaskHandler<'squared-error'> = (scope) => {
  const { from, to, mean = 0 } = scope.params;
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const [rowBias, columnBias] = ['rowBias', 'columnBias'].map((name) => valuesOf(scope, name));
  const { offsets } = blockOf(scope);
  const size = rowFactors.stride * 4;
  const sums = workspaceOf(scope).address;
  const view = new Float64Array(scope.memory.buffer, sums, 2).fill(0);
  let count = 0;
  for (const chunk of rowChunks(scope, from, to, rowFactors.stride / 8, 1)) {
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

/** See `implicit-error` of KernelTasks. All chunks add to the same sum, in row order. */
export const implicitError: TaskHandler<'implicit-error'> = (scope) => {
  const { from, to, base } = scope.params;
  const rowFactors = scope.matrix('rowFactors');
  const size = rowFactors.stride * 4;
  const sum = workspaceOf(scope, true).address;
  const view = new Float64Array(scope.memory.buffer, sum, 1).fill(0);
  let bytesUp = 0;
  for (const chunk of rowChunks(scope, from, to, rowFactors.stride / 8, 1)) {
    const { values, weights } = weighedRatings(scope, scope.params, chunk);
    scope.kernels.addImplicitErrors(
      rowFactors.pointer + chunk.row * size,
      scope.matrix('columnFactors').pointer,
      size,
      chunk.offsets,
      chunk.indices,
      values,
      weights,
      base,
      chunk.rows,
      sum,
    );
    bytesUp += 8 * chunk.count;
  }
  return { rows: to - from, bytesUp, values: { sum: view[0] } };
};

/** Subtracts μ and both sides' biases from the ratings of a chunk: r_uv becomes r_uv - μ - β_u - γ_v. */
function subtractBoth(
  scope: TaskScope,
  chunk: RowChunk,
  mean: number,
  own: Float32Array,
  fixed: Float32Array,
  offsets: Int32Array,
): void {
  const indices = new Uint32Array(scope.memory.buffer, chunk.indices, chunk.count);
  const values = new Float32Array(scope.memory.buffer, chunk.values, chunk.count);
  if (!chunk.starts || !chunk.ends) {
    for (let k = 0; k < values.length; k++) values[k] -= mean + own[chunk.row] + fixed[indices[k]];
    return;
  }
  const first = offsets[chunk.row];
  for (let row = chunk.row; row < chunk.row + chunk.rows; row++) {
    const base = mean + own[row];
    for (let k = offsets[row] - first; k < offsets[row + 1] - first; k++)
      values[k] -= base + fixed[indices[k]];
  }
}
