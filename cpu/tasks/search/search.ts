import { UsageError } from '../../../engine/errors.ts';
import { fallingOrder } from '../../../engine/numbers/falling-order.ts';
import { Search } from '../../generated/structs.ts';
import { type ScopeOf, type TaskHandler, type TaskScope, SCRATCH_BYTES, valuesOf } from '../../handler.ts';
import { ScratchAddresses, Struct } from '../../scratch.ts';

/** Largest number in the rounded query x̂. With |d̂| <= 127, sums over the features then fit 32 bits. */
const MOST_QUERY = 16_383;

/**
 * Upper bound of all rounding errors of a search: in a score, which is a float32 sum of `rank` products, in
 * the bounds and in `base`. It is relative to the product of both vectors' lengths.
 */
export const roundings = (rank: number) => (rank + 32) * 2 ** -23;

export const search: TaskHandler<'search'> = (scope) => {
  let rows = 0;
  const found: Found[] = [];
  for (const params of scope.params.searches) {
    if (scope.cancelled()) break;
    const one = searchOne({ ...scope, params });
    rows += one.rows;
    found.push(one.found);
  }
  return { rows, values: { found } };
};

type Found = { readonly items: readonly number[]; readonly scores: readonly number[] };
type Searched = ScopeOf<'search'>['params']['searches'][number];

/**
 * Searches for one query. `rows`: the number of columns whose bounds were computed, or of the items `allowed`,
 * whose columns alone are then searched.
 */
export function searchOne(scope: TaskScope<Searched>): { readonly rows: number; readonly found: Found } {
  const { query, n, left, allowed } = scope.params;
  const { buffer } = scope.memory;
  const [exact, coarse, guide] = ['exact', 'coarse', 'guide'].map((name) => scope.matrix(name));
  const width = 4 * coarse.stride;
  const mask = valuesOf<Uint8Array>(scope, 'mask');
  const lists = { left: left.length, allowed: allowed?.length ?? 0, mask: mask?.length ?? 0 };
  const at = layout(scope, { rank: exact.columns, width, n, ...lists });
  new Float32Array(buffer, at.query, exact.columns).set(query);
  new Uint32Array(buffer, at.left, left.length).set(left);
  if (mask !== undefined) new Uint8Array(buffer, at.mask, mask.length).set(mask);
  const search = new Struct(scope.memory, at.search, Search).set({
    query: at.query,
    rank: exact.columns,
    exact: exact.pointer,
    size: 4 * exact.stride,
    coarseQuery: at.coarse,
    coarse: coarse.pointer,
    width,
    bound: at.bound,
    guide: guide.pointer,
    stride: 4 * guide.stride,
    columns: exact.rows,
    left: at.left,
    leftCount: left.length,
    mask: at.mask,
    n,
    scores: at.scores,
    items: at.items,
  });
  let rows = allowed?.length ?? 0;
  if (allowed === undefined) {
    // An item's exact score is computed only if its bound, from 8-bit numbers, is high enough.
    const center = scope.matrix('center');
    const centers = new Float32Array(buffer, center.pointer, center.rows * center.stride);
    const x = new Float32Array(buffer, at.query, exact.columns);
    const bound = new Float32Array(buffer, at.bound, 5);
    bound.set(boundsOf(x, centers, center.stride, new Int16Array(buffer, at.coarse, width)));
    rows = scope.kernels.searchColumns(search.address);
  } else {
    const places = new Uint32Array(buffer, guide.pointer + 16 * guide.stride, guide.stride);
    new Uint32Array(buffer, at.chosen, rows).set(allowed.map((item) => places[item]));
    scope.kernels.searchChosen(search.address, at.chosen, rows);
  }
  const items = new Uint32Array(buffer, at.items, n);
  const scores = new Float32Array(buffer, at.scores, n);
  // Empty entries are last.
  let found = n;
  while (found > 0 && Number.isNaN(scores[found - 1])) found--;
  return {
    rows,
    found: { items: Array.from(items.subarray(0, found)), scores: Array.from(scores.subarray(0, found)) },
  };
}

/**
 * Rounds the query x to 16-bit numbers x̂, which are written to `coarse`. Returns base, ‖x‖, ‖x - x̂‖, step
 * and slack, as defined in cpu/assembly/search.ts. The norms are over the features in which columns differ.
 */
function boundsOf(
  x: Float32Array,
  centers: Float32Array,
  stride: number,
  coarse: Int16Array,
): readonly number[] {
  let base = 0;
  for (let k = 0; k < x.length; k++) base += x[k] * centers[k];
  const { all, length, missing, step } = roundQuery(x, centers.subarray(stride), coarse);
  const slack = roundings(x.length) * (all * centers[2 * stride] + Math.abs(base));
  return [base, length, missing, step, slack * ROUND_UP];
}

/** Norms are multiplied by this factor, so that they are not too small after rounding to float32. */
const ROUND_UP = 1 + 1e-6;

/**
 * Rounds the query x to 16-bit numbers x̂, which are written to `coarse`. Returns its whole length, and over
 * the features for which `differs` is not 0 ‖x‖ and ‖x - x̂‖, and the step of x̂.
 */
export function roundQuery(x: Float32Array, differs: Float32Array, coarse: Int16Array) {
  const rank = x.length;
  let [all, squares, most] = [0, 0, 0];
  for (let k = 0; k < rank; k++) {
    all += x[k] ** 2;
    if (differs[k] === 0) continue;
    squares += x[k] ** 2;
    most = Math.max(most, Math.abs(x[k]));
  }
  const range = Math.min(MOST_QUERY, Math.floor(2 ** 31 / (128 * Math.max(rank, 1))) - 1);
  const step = Math.fround(most / range);
  coarse.fill(0);
  let missing = 0;
  for (let k = 0; k < rank; k++) {
    if (differs[k] === 0) continue;
    const rounded = step > 0 ? Math.max(-range, Math.min(range, Math.round(x[k] / step))) : 0;
    coarse[k] = rounded;
    missing += (x[k] - rounded * step) ** 2;
  }
  return {
    all: Math.sqrt(all),
    length: Math.sqrt(squares) * ROUND_UP,
    missing: Math.sqrt(missing) * ROUND_UP,
    step,
  };
}

/** Addresses of the search's arrays in scratch. Throws UsageError if they do not fit. */
function layout(
  scope: TaskScope,
  {
    rank,
    width,
    n,
    left,
    allowed,
    mask,
  }: Readonly<Record<'rank' | 'width' | 'n' | 'left' | 'allowed' | 'mask', number>>,
) {
  const addresses = new ScratchAddresses(scope.scratch);
  const { take } = addresses;
  const at = {
    query: take(4 * rank),
    coarse: take(2 * width),
    bound: take(20),
    search: take(Search.bytes),
    scores: take(4 * n),
    items: take(4 * n),
    left: take(4 * left),
    chosen: take(4 * allowed),
    // An address of 0 for searches without a mask.
    mask: mask === 0 ? 0 : take(mask),
  };
  if (addresses.bytes > SCRATCH_BYTES)
    throw new UsageError(`lists of ${left + allowed} items are too long for one request`, {
      phase: 'search',
      advice: 'Ask for all users, whose lists are read from a data set',
    });
  return at;
}

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
