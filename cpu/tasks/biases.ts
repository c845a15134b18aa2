import type { MatrixView, TaskScope } from '../handler.ts';
import type { RowChunk } from './row-chunks.ts';

/** The bias column of a task's input or output; undefined where the task has none. */
export function biasColumn(scope: TaskScope, name: string): Float32Array | undefined {
  return scope.hasInput(name) ? (scope.partition(name).columns.values as Float32Array) : undefined;
}

/** Takes μ and the fixed side's biases off the ratings of a chunk in scratch: r_uv becomes r_uv - μ - γ_v. */
export function subtractFixed(scope: TaskScope, chunk: RowChunk, mean: number, fixed: Float32Array): void {
  const indices = new Uint32Array(scope.memory.buffer, chunk.indices, chunk.count);
  const values = new Float32Array(scope.memory.buffer, chunk.values, chunk.count);
  for (let k = 0; k < values.length; k++) values[k] -= mean + fixed[indices[k]];
}

/** The same with the rows' own biases: the ratings' errors but for x_uᵀθ_v + 1, which the features' product gives. */
export function subtractBoth(scope: TaskScope, chunk: RowChunk, mean: number, own: Float32Array, fixed: Float32Array, offsets: Int32Array): void {
  const indices = new Uint32Array(scope.memory.buffer, chunk.indices, chunk.count);
  const values = new Float32Array(scope.memory.buffer, chunk.values, chunk.count);
  if (!chunk.starts || !chunk.ends) {
    for (let k = 0; k < values.length; k++) values[k] -= mean + own[chunk.row] + fixed[indices[k]] - 1;
    return;
  }
  const first = offsets[chunk.row];
  for (let row = chunk.row; row < chunk.row + chunk.rows; row++) {
    const base = mean + own[row] - 1;
    for (let k = offsets[row] - first; k < offsets[row + 1] - first; k++) values[k] -= base + fixed[indices[k]];
  }
}

/** Makes the rows [from, to) of `output` the start of a solve: the rows of `previous` with their biases in the place of the 1. */
export function startWithBias(scope: TaskScope, previous: MatrixView, output: MatrixView, bias: Float32Array, column: number, from: number, to: number): void {
  const all = new Float32Array(scope.memory.buffer);
  const [source, target] = [previous.pointer / 4, output.pointer / 4];
  const { stride } = output;
  all.copyWithin(target + from * stride, source + from * stride, source + to * stride);
  for (let row = from; row < to; row++) all[target + row * stride + column] = bias[row];
}

/** Moves the biases that were solved in `column` to their own place, and puts the 1 back. */
export function splitBias(scope: TaskScope, output: MatrixView, bias: Float32Array, column: number, from: number, to: number): void {
  const factors = new Float32Array(scope.memory.buffer, output.pointer, to * output.stride);
  for (let row = from; row < to; row++) {
    const at = row * output.stride + column;
    bias[row] = factors[at];
    factors[at] = 1;
  }
}
