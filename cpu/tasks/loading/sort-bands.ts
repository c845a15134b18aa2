import type { TaskHandler } from '../../handler.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** Ratings in scratch that stays in the core's cache. */
interface Scratch {
  readonly keys: Uint32Array;
  readonly bits: Uint32Array;
}

/** See `sort-bands` of KernelTasks. */
export const sortBands: TaskHandler<'sort-bands'> = (scope) => {
  const { from, to, columns, columnBits, order } = scope.params;
  const { firstRow } = bandsOf(scope);
  const { offsets, keys, bits } = keysOf(scope.partition('block'));
  const digits = order === 'kept' ? [] : columnDigits(columns, columnBits, (offsets[firstRow[to]] - offsets[firstRow[from]]) / Math.max(1, to - from));
  const counters = new Int32Array(digits.reduce((most, { values }) => Math.max(most, values + 1), 0));
  let scratch: readonly [Scratch, Scratch] = [scratchOf(0), scratchOf(0)];
  const found = { extra: 0, row: -1, column: -1 };
  for (let band = from; band < to && !scope.cancelled(); band++) {
    const [firstOf, endOf] = [firstRow[band], firstRow[band + 1]];
    const [low, high] = [offsets[firstOf], offsets[endOf]];
    if (high - low > scratch[0].keys.length) scratch = [scratchOf(high - low), scratchOf(digits.length > 1 ? high - low : 0)];
    let [source, target] = scratch;
    if (digits.length === 0) {
      source.keys.set(keys.subarray(low, high));
      source.bits.set(bits.subarray(low, high));
    } else {
      sortByDigit(keys.subarray(low, high), bits.subarray(low, high), source, digits[0], counters);
    }
    for (const digit of digits.slice(1)) {
      sortByDigit(source.keys.subarray(0, high - low), source.bits, target, digit, counters);
      [source, target] = [target, source];
    }
    placeRows(source, high - low, offsets.slice(firstOf, endOf), columnBits, keys, bits);
    if (order === 'kept') continue;
    const [extra, row, column] = findRepeated(offsets, firstOf, endOf, keys, order === 'by-value' ? bits : undefined);
    if (extra > 0 && found.extra === 0) [found.row, found.column] = [row, column];
    found.extra += extra;
  }
  return { rows: offsets[firstRow[to]] - offsets[firstRow[from]], values: found };
};

function scratchOf(ratings: number): Scratch {
  return { keys: new Uint32Array(ratings), bits: new Uint32Array(ratings) };
}

interface Digit {
  readonly shift: number;
  readonly values: number;
}

/** The column is sorted at once, or by two digits where there are many more columns than ratings of a band. */
function columnDigits(columns: number, columnBits: number, ratings: number): Digit[] {
  if (columns <= 4 * ratings) return [{ shift: 0, values: columns }];
  const half = columnBits >>> 1;
  return [{ shift: 0, values: 2 ** half }, { shift: half, values: 2 ** (columnBits - half) }];
}

/** A stable counting sort by one digit of the key. `counters`: scratch of a number more than the digit has values. */
function sortByDigit(keys: Uint32Array, bits: Uint32Array, { keys: sortedKeys, bits: sortedBits }: Scratch, { shift, values }: Digit, counters: Int32Array): void {
  const mask = 2 ** (32 - Math.clz32(values - 1)) - 1;
  counters.fill(0, 0, values + 1);
  for (let k = 0; k < keys.length; k++) counters[((keys[k] >>> shift) & mask) + 1]++;
  for (let value = 1; value < values; value++) counters[value] += counters[value - 1];
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k];
    const place = counters[(key >>> shift) & mask]++;
    sortedKeys[place] = key;
    sortedBits[place] = bits[k];
  }
}

/** The last pass: each rating to its row, whose next place is in `cursors`; keys become columns. */
function placeRows({ keys, bits }: Scratch, count: number, cursors: Int32Array, columnBits: number, columns: Uint32Array, values: Uint32Array): void {
  const mask = 2 ** columnBits - 1;
  for (let k = 0; k < count; k++) {
    const key = keys[k];
    const place = cursors[key >>> columnBits]++;
    columns[place] = key & mask;
    values[place] = bits[k];
  }
}

/** Counts ratings that have the row and column of the one before; gives the first of them. With `bits` they are sorted by value. */
function findRepeated(offsets: Int32Array, from: number, to: number, columns: Uint32Array, bits: Uint32Array | undefined): readonly [extra: number, row: number, column: number] {
  let extra = 0;
  let [firstRow, firstColumn] = [-1, -1];
  for (let row = from; row < to; row++) {
    for (let k = offsets[row] + 1; k < offsets[row + 1]; k++) {
      if (columns[k] !== columns[k - 1]) continue;
      if (extra === 0) [firstRow, firstColumn] = [row, columns[k]];
      const first = k - 1;
      while (k < offsets[row + 1] && columns[k] === columns[first]) k++;
      extra += k - 1 - first;
      if (bits !== undefined) new Float32Array(bits.buffer, bits.byteOffset + 4 * first, k - first).sort();
    }
  }
  return [extra, firstRow, firstColumn];
}
