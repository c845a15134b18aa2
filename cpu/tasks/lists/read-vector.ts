import type { VectorShape } from '../../../operators/tasks/tasks.ts';

/**
 * Returns a function that copies a vector of `values` to `target`, divided by its length if the shape is
 * normalized: with the same bits as operators/serving/similar.ts.
 */
export function vectorReader(
  values: Float32Array,
  { width, rank, normalized }: VectorShape,
): (row: number, target: Float32Array, at: number) => void {
  if (!normalized)
    return (row, target, at) => {
      for (let k = 0, from = row * width; k < rank; k++) target[at + k] = values[from + k];
    };
  return (row, target, at) => {
    const from = row * width;
    let squares = 0;
    for (let k = 0; k < rank; k++) squares += values[from + k] ** 2;
    const length = Math.sqrt(squares);
    for (let k = 0; k < rank; k++) target[at + k] = length > 0 ? values[from + k] / length : 0;
  };
}
