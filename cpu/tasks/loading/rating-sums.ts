import { addValues } from '../../../engine/numbers/concatenate.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { blockOf, stopsAt, type TaskHandler, valuesOf } from '../../handler.ts';
import { LoadingMemory } from './loading-memory.ts';
import { type Coded, tableWords, writerOf } from './scatter-by-band.ts';

/** Float64 totals of the kernel `sumRows`, with room for bounds. */
const TOTALS = 7;

/** Ratings that are copied to the kernels' memory at a time. */
const COPIED = 1 << 15;
/** Most ratings of a row that are summed in one call; the ratings of a longer row are cut. */
const PART = 1 << 20;

export const sumRatings: TaskHandler<'sum-ratings'> = (scope) => {
  const { from, to } = scope.params;
  const { offsets, values } = blockOf(scope);
  const rowSums = scope.partition('rowSums').columns.sums as Float64Array;
  const [memory, rows] = [LoadingMemory.own(), to - from];
  const layOut = (ratings: number) => memory.layOut(rows + 1, 2 * rows, 2 * rows, 2 * TOTALS, ratings);
  const [offsetsAt, sumsAt, othersAt, totalsAt] = layOut(0);
  memory.words(offsetsAt, rows + 1).set(bitsOf(offsets.subarray(from, to + 1)));
  memory.doubles(sumsAt, rows).fill(0);
  memory.doubles(othersAt, rows).set(rowSums.subarray(from, to));
  memory.doubles(totalsAt, TOTALS).set([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0, 0, 0]);
  for (const { row, end, first, last } of piecesOf(offsets, from, to, PART)) {
    if (scope.cancelled()) break;
    const valuesAt = layOut(last - first)[4];
    memory.floats(valuesAt, last - first).set(values.subarray(first, last));
    memory.kernels.sumRows(
      valuesAt,
      offsetsAt + 4 * (row - from),
      end - row,
      first,
      last,
      sumsAt + 8 * (row - from),
      totalsAt,
    );
  }
  const sum = memory.kernels.addSums(sumsAt, rows, othersAt);
  rowSums.set(memory.doubles(othersAt, rows), from);
  const [least, most, broken, count, mean, squares] = memory.doubles(totalsAt, TOTALS);
  return {
    rows: offsets[to] - offsets[from],
    values: { sum, least, most, whole: broken === 0, count, mean, squares },
  };
};

export const dampedMeans: TaskHandler<'damped-means'> = (scope) => {
  const { from, to, mean, damping } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const [memory, rows, start] = [LoadingMemory.own(), to - from, offsets[from]];
  const ofColumns: Coded = {
    codes: indices.subarray(start, offsets[to]),
    maps: [bitsOf(scope.partition('columnMeans').columns.values as Float32Array)],
  };
  const [offsetsAt, sumsAt, valuesAt, meansAt, tableAt] = memory.layOut(
    rows + 1,
    2 * rows,
    Math.max(rows, COPIED),
    COPIED,
    tableWords(ofColumns),
  );
  const writeMeans = writerOf(memory, ofColumns, tableAt);
  memory.words(offsetsAt, rows + 1).set(bitsOf(offsets.subarray(from, to + 1)));
  memory.doubles(sumsAt, rows).fill(0);
  for (const { row, end, first, last } of piecesOf(offsets, from, to, COPIED)) {
    if (scope.cancelled()) break;
    memory.floats(valuesAt, last - first).set(values.subarray(first, last));
    writeMeans(first - start, last - start, meansAt);
    memory.kernels.sumApart(
      valuesAt,
      meansAt,
      offsetsAt + 4 * (row - from),
      end - row,
      first,
      last,
      mean,
      sumsAt + 8 * (row - from),
    );
  }
  memory.kernels.dampSums(sumsAt, offsetsAt, rows, damping, valuesAt);
  (scope.partition('rowMeans').columns.values as Float32Array).set(memory.floats(valuesAt, rows), from);
  return { rows: offsets[to] - offsets[from] };
};

/**
 * The ratings [first, last), which belong to the rows [row, end): several rows with at most COPIED ratings
 * together, or up to `part` ratings of one longer row.
 */
interface Piece {
  readonly row: number;
  readonly end: number;
  readonly first: number;
  readonly last: number;
}

function* piecesOf(offsets: Int32Array, from: number, to: number, part: number): Generator<Piece> {
  for (let row = from; row < to;) {
    let [end, beyond] = [row, to + 1];
    while (end + 1 < beyond) {
      const middle = (end + beyond) >>> 1;
      if (offsets[middle] - offsets[row] <= COPIED) end = middle;
      else beyond = middle;
    }
    if (end > row) yield { row, end, first: offsets[row], last: offsets[end] };
    else
      for (let first = offsets[row]; first < offsets[row + 1]; first += part)
        yield { row, end: row + 1, first, last: Math.min(first + part, offsets[row + 1]) };
    row = Math.max(end, row + 1);
  }
}

function bitsOf({ buffer, byteOffset, length }: Int32Array | Float32Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length);
}

export const sumColumns: TaskHandler<'sum-columns'> = (scope) => {
  const { from, to, columns, mean = 0 } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const rowMeans = valuesOf(scope, 'rowMeans');
  const [sums, counts] = [sharedArray(Float64Array, columns), sharedArray(Int32Array, columns)];
  for (let row = from; row < to && !stopsAt(scope, row); row++) {
    const expected = rowMeans === undefined ? 0 : mean + rowMeans[row];
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      sums[indices[k]] += values[k] - expected;
      counts[indices[k]]++;
    }
  }
  return {
    rows: offsets[to] - offsets[from],
    partitions: { sums: { layout: 'column-sums', rows: columns, columns: { sums, counts } } },
  };
};

export const sumValues: TaskHandler<'sum-values'> = (scope) => {
  const { from, to, apart } = scope.params;
  return { rows: to - from, values: { sum: addValues(0, blockOf(scope).values.subarray(from, to), apart) } };
};

export const standardize: TaskHandler<'standardize'> = (scope) => {
  const { from, to, center, deviation } = scope.params;
  const { offsets, values } = blockOf(scope);
  let squares = 0;
  for (let row = from; row < to && !stopsAt(scope, row); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      values[k] = (values[k] - center) / deviation;
      squares += values[k] * values[k];
    }
  }
  return { rows: offsets[to] - offsets[from], values: { squares } };
};
