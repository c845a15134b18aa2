import { fallingOrder } from '../../../engine/numbers/falling-order.ts';
import type { TaskHandler, TaskScope } from '../../handler.ts';

/** Norms are multiplied by this factor, so that they are not too small after rounding to float32. */
const ROUND_UP = 1 + 1e-6;

/**
 * Fills the search index of the item vectors: the vectors sorted by their distance from the mean, their 8-bit
 * copies, and the numbers that limit the scores. See `prepare-search` of KernelTasks, and
 * cpu/assembly/search.ts for the equations.
 */
export const prepareSearch: TaskHandler<'prepare-search'> = (scope) => {
  const { width, rank, normalized } = scope.params;
  const given = scope.partition('vectors').columns.values as Float32Array;
  const columns = given.length / width;
  const vector = new Float32Array(rank);
  const read = normalized ? readUnit : readVector;
  const { mean, longest } = meanOf(columns, rank, (column) => read(given, column * width, vector));
  const differs = new Uint8Array(rank);
  const lengths = new Float32Array(columns);
  for (let column = 0; column < columns; column++) {
    read(given, column * width, vector);
    let squares = 0;
    for (let k = 0; k < rank; k++) {
      const difference = vector[k] - mean[k];
      if (difference !== 0) differs[k] = 1;
      squares += difference * difference;
    }
    lengths[column] = Math.sqrt(squares);
  }
  const order = fallingOrder(lengths);
  const at = viewsOf(scope);
  at.center.fill(0);
  at.center.set(mean);
  at.center.set(differs, at.centerStride);
  at.center[2 * at.centerStride] = longest * ROUND_UP;
  at.exact.fill(0);
  at.coarse.fill(0);
  for (let place = 0; place < columns && !scope.cancelled(); place++) {
    const item = order[place];
    read(given, item * width, vector);
    at.exact.set(vector, place * at.exactStride);
    const { scale, remainder } = toBytes(vector, mean, at.coarse, place * at.coarseStride);
    at.lengths[place] = (lengths[item] + remainder) * ROUND_UP;
    at.remainders[place] = remainder * ROUND_UP;
    at.scales[place] = scale;
    at.items[place] = item;
    at.places[item] = place;
  }
  // The search ends at the first column whose bound is too small, so these lengths must not increase from
  // column to column. Columns are sorted by length, but sums of lengths and remainders may increase. So each
  // is raised to at least the next one.
  for (let place = columns - 2; place >= 0; place--)
    at.lengths[place] = Math.max(at.lengths[place], at.lengths[place + 1]);
  return { rows: columns, bytesUp: given.byteLength };
};

function readVector(given: Float32Array, from: number, vector: Float32Array): Float32Array {
  for (let k = 0; k < vector.length; k++) vector[k] = given[from + k];
  return vector;
}

/** Reads a vector and divides it by its length, as operators/serving/similar.ts does. */
function readUnit(given: Float32Array, from: number, vector: Float32Array): Float32Array {
  let squares = 0;
  for (let k = 0; k < vector.length; k++) squares += given[from + k] ** 2;
  const length = Math.sqrt(squares);
  for (let k = 0; k < vector.length; k++) vector[k] = length > 0 ? given[from + k] / length : 0;
  return vector;
}

/** Returns θ̄, which must not depend on the order of columns, and the largest ‖θ_v‖. */
function meanOf(
  columns: number,
  rank: number,
  read: (column: number) => Float32Array,
): { readonly mean: Float32Array; readonly longest: number } {
  const sums = new Float64Array(rank);
  let longest = 0;
  for (let column = 0; column < columns; column++) {
    const vector = read(column);
    let squares = 0;
    for (let k = 0; k < rank; k++) {
      sums[k] += vector[k];
      squares += vector[k] ** 2;
    }
    longest = Math.max(longest, squares);
  }
  return {
    mean: Float32Array.from(sums, (sum) => (columns > 0 ? sum / columns : 0)),
    longest: Math.sqrt(longest),
  };
}

/**
 * Rounds θ - θ̄ to 8 bits, as multiples of a scale. Returns the scale, and the length of the rounding error.
 */
export function toBytes(
  vector: Float32Array,
  mean: Float32Array,
  bytes: Int8Array,
  from: number,
): { readonly scale: number; readonly remainder: number } {
  let most = 0;
  for (let k = 0; k < vector.length; k++) most = Math.max(most, Math.abs(vector[k] - mean[k]));
  const scale = Math.fround(most / 127);
  let squares = 0;
  for (let k = 0; k < vector.length; k++) {
    const difference = vector[k] - mean[k];
    const rounded = scale > 0 ? Math.max(-127, Math.min(127, Math.round(difference / scale))) : 0;
    bytes[from + k] = rounded;
    squares += (difference - rounded * scale) ** 2;
  }
  return { scale, remainder: Math.sqrt(squares) };
}

/** The matrices of the index as arrays, with strides in elements. */
function viewsOf(scope: TaskScope) {
  const { buffer } = scope.memory;
  const [exact, coarse, guide, center] = ['exact', 'coarse', 'guide', 'center'].map((name) =>
    scope.matrix(name),
  );
  const row = (number: number) => guide.pointer + 4 * number * guide.stride;
  const numbers = (number: number) => new Float32Array(buffer, row(number), guide.stride);
  return {
    exact: new Float32Array(buffer, exact.pointer, exact.rows * exact.stride),
    exactStride: exact.stride,
    coarse: new Int8Array(buffer, coarse.pointer, 4 * coarse.rows * coarse.stride),
    coarseStride: 4 * coarse.stride,
    lengths: numbers(0),
    remainders: numbers(1),
    scales: numbers(2),
    items: new Uint32Array(buffer, row(3), guide.stride),
    places: new Uint32Array(buffer, row(4), guide.stride),
    center: new Float32Array(buffer, center.pointer, center.rows * center.stride),
    centerStride: center.stride,
  };
}
