import type { TaskScope } from '../handler.ts';
import type { RowChunk } from './row-chunks.ts';

/** The biases in a task's input or output `name`; undefined if the task has none of this name. */
export function biasColumn(scope: TaskScope, name: string): Float32Array | undefined {
  return scope.hasInput(name) ? (scope.partition(name).columns.values as Float32Array) : undefined;
}

/**
 * Subtracts μ and the fixed side's biases from the ratings of a chunk in scratch: r_uv becomes r_uv - μ -
 * γ_v.
 */
export function subtractFixed(scope: TaskScope, chunk: RowChunk, mean: number, fixed: Float32Array): void {
  const indices = new Uint32Array(scope.memory.buffer, chunk.indices, chunk.count);
  const values = new Float32Array(scope.memory.buffer, chunk.values, chunk.count);
  for (let k = 0; k < values.length; k++) values[k] -= mean + fixed[indices[k]];
}

/** Subtracts also the rows' own biases: r_uv becomes r_uv - μ - β_u - γ_v. */
export function subtractBoth(
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
