/**
 * The first `rank` numbers at `from`, divided by their length; zeros stay zeros. The result has the same bits
 * as the vectors of a search index, which the task `prepare-search` divides in the same way.
 */
export function unitVector(
  values: Float32Array,
  from: number,
  rank: number,
  target = new Float32Array(rank),
  at = 0,
): Float32Array {
  let squares = 0;
  for (let k = from; k < from + rank; k++) squares += values[k] ** 2;
  const length = Math.sqrt(squares);
  for (let k = 0; k < rank; k++) target[at + k] = length > 0 ? values[from + k] / length : 0;
  return target;
}
