import { randomU32 } from '../../../engine/random.ts';
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

/** Rounds of signs and transforms: after two, each number has a part of all others. */
const ROUNDS = 4;

/**
 * A rotation of vectors of `rank` numbers, in place, the same for all vectors: random signs, then a
 * Walsh-Hadamard transform of the first 2^m numbers, or in every second round of the last ones. Products of
 * rotated vectors are the products of the vectors. A feature by which vectors differ most, such as a bias, is
 * distributed over all numbers, so that one bit or byte for each number loses about the same of each ("random
 * rotation" of Gao, Long, "RaBitQ", SIGMOD 2024). Additions, products and one root: the same bits everywhere.
 */
export function rotation(rank: number): (vector: Float32Array) => void {
  const width = 2 ** Math.floor(Math.log2(rank));
  const scale = 1 / Math.sqrt(width);
  const signs = Float64Array.from({ length: ROUNDS * rank }, (_, at) =>
    randomU32(rank, 0, at) % 2 === 0 ? scale : -scale,
  );
  const work = new Float64Array(rank);
  return (vector) => {
    for (let k = 0; k < rank; k++) work[k] = vector[k];
    for (let round = 0; round < ROUNDS; round++) {
      const from = round % 2 === 0 ? 0 : rank - width;
      for (let k = from; k < from + width; k++) work[k] *= signs[round * rank + k];
      transform(work, from, width);
    }
    for (let k = 0; k < rank; k++) vector[k] = work[k];
  };
}

/** The Walsh-Hadamard transform of values[from] .. values[from + width - 1]. */
function transform(values: Float64Array, from: number, width: number): void {
  for (let half = 1; half < width; half *= 2)
    for (let block = from; block < from + width; block += 2 * half)
      for (let k = block; k < block + half; k++) {
        const left = values[k];
        const right = values[k + half];
        values[k] = left + right;
        values[k + half] = left - right;
      }
}
