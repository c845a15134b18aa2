import { ValueCounts, type ValueWeight, mapValues, weightOf } from '../../engine/numbers/value-index.ts';
import type { None } from '../../operators/tasks/task-types.ts';
import { blockOf, stopsAt, type TaskHandler, type TaskScope } from '../handler.ts';

/** Tasks that count the ratings of implicit data and turn them into weights. */

/** See `gram` of KernelTasks. Each slice reads all rows of θ, which takes some milliseconds. */
export const gram: TaskHandler<'gram'> = (scope) => {
  const { from, to, weight } = scope.params;
  const factors = scope.matrix('factors');
  const { pointer, stride } = scope.matrix('gram');
  // The last slice also writes the padding.
  const end = Math.min(stride, Math.ceil(to / 8) * 8);
  scope.kernels.gramRows(
    factors.pointer,
    4 * stride,
    factors.rows,
    from,
    end,
    weight,
    pointer,
    scope.scratch,
  );
  return { rows: to - from };
};

/** Ratings between two checks for cancellation. */
const CHUNK = 1 << 18;

export const countPositive: TaskHandler<'count-positive'> = (scope) => {
  const { from, to } = scope.params;
  const { offsets, values } = blockOf(scope);
  const counts = scope.partition('positive').columns.counts as Int32Array;
  let [negative, zero, sum] = [0, 0, 0];
  for (let row = from; row < to && !stopsAt(scope, row); row++) {
    let positive = 0;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const value = values[k];
      if (value > 0) {
        positive++;
        sum += value;
      } else if (value < 0) negative++;
      else zero++;
    }
    counts[row] += positive;
  }
  return { rows: offsets[to] - offsets[from], values: { negative, zero, sum } };
};

export const countValues: TaskHandler<'count-values'> = (scope) => {
  const { from, to } = scope.params;
  const { offsets, values } = blockOf(scope);
  const found = new ValueCounts();
  for (const [first, last] of pieces(scope, offsets[from], offsets[to]))
    found.add(values.subarray(first, last));
  return { rows: offsets[to] - offsets[from], values: { distinct: found.sorted() ?? null } };
};

export const sumWeights: TaskHandler<'sum-weights'> = (scope) => {
  const { from, to, weight } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const counts = itemCountsOf(scope);
  const sums = scope.partition('rowSums').columns.sums as Float64Array;
  let [least, most] = [Infinity, 0];
  for (let row = from; row < to && !stopsAt(scope, row); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const size = Math.abs(values[k]);
      if (size < least) least = size;
      if (size > most) most = size;
      sums[row] += weight === null ? Math.log(size) : weightOf(weight, size, counts[indices[k]]);
    }
  }
  return { rows: offsets[to] - offsets[from], values: { least, most } };
};

export const weighRatings: TaskHandler<'weigh-ratings'> = (scope) => {
  const { from, to, rows, form, unit, scale, meanCount } = scope.params;
  const weight: ValueWeight = { form, unit, scale, meanCount };
  const { offsets, indices, values } = blockOf(scope);
  const weights = scope.partition('weights').columns.values as Float32Array;
  if (form === 'bm25') {
    const counts = itemCountsOf(scope);
    for (let row = from; row < to && !stopsAt(scope, row); row++)
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        weights[k] = weightOf(weight, values[k], counts[rows === 'items' ? row : indices[k]]);
  } else
    for (const [first, last] of pieces(scope, offsets[from], offsets[to]))
      mapValues(values.subarray(first, last), weights.subarray(first, last), (rating) =>
        weightOf(weight, rating, 1),
      );
  return { rows: offsets[to] - offsets[from] };
};

/** The numbers from `first` to `last` in pieces, until the run is cancelled. */
function* pieces(scope: TaskScope<None>, first: number, last: number): Generator<[number, number]> {
  for (let from = first; from < last && !scope.cancelled(); from += CHUNK)
    yield [from, Math.min(from + CHUNK, last)];
}

function itemCountsOf(scope: TaskScope<None>): Int32Array | Uint32Array {
  return scope.partition('itemCounts').columns.counts as Int32Array | Uint32Array;
}
