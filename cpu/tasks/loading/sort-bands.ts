import type { TaskHandler } from '../../handler.ts';
import { LoadingMemory } from './loading-memory.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** See `sort-bands` of KernelTasks. */
export const sortBands: TaskHandler<'sort-bands'> = (scope) => {
  const { from, to, columns, columnBits, order } = scope.params;
  const { firstRow } = bandsOf(scope);
  const { offsets, keys, bits } = keysOf(scope.partition('block'));
  const digits = order === 'kept' ? [] : columnDigits(columns, columnBits, (offsets[firstRow[to]] - offsets[firstRow[from]]) / Math.max(1, to - from));
  const counters = digits.reduce((most, { values }) => Math.max(most, values), 0);
  const memory = LoadingMemory.own();
  const { kernels } = memory;
  const found = { extra: 0, row: -1, column: -1 };
  for (let band = from; band < to && !scope.cancelled(); band++) {
    const [firstOf, endOf] = [firstRow[band], firstRow[band + 1]];
    const [low, high] = [offsets[firstOf], offsets[endOf]];
    const count = high - low;
    // The keys of one row are its columns.
    if (count === 0 || (order === 'kept' && endOf - firstOf === 1)) continue;
    const [keysAt, bitsAt, otherKeys, otherBits, countersAt, cursorsAt] = memory.layOut(count, count, count, count, counters, endOf - firstOf);
    let [source, target] = [[keysAt, bitsAt], [otherKeys, otherBits]] as const;
    memory.words(keysAt, count).set(keys.subarray(low, high));
    memory.words(bitsAt, count).set(bits.subarray(low, high));
    memory.words(cursorsAt, endOf - firstOf).set(offsets.subarray(firstOf, endOf));
    for (const { shift, values } of digits) {
      kernels.sortByDigit(...source, count, ...target, shift, values, countersAt);
      [source, target] = [target, source];
    }
    kernels.placeRows(...source, count, cursorsAt, low, columnBits, ...target);
    const repeated = kernels.columnsOf(target[0], count, columnBits);
    keys.set(memory.words(target[0], count), low);
    bits.set(memory.words(target[1], count), low);
    if (order === 'kept' || repeated === 0) continue;
    const [row, column] = findRepeated(offsets, firstOf, endOf, keys, order === 'by-value' ? bits : undefined);
    if (found.extra === 0) [found.row, found.column] = [row, column];
    found.extra += repeated;
  }
  return { rows: offsets[firstRow[to]] - offsets[firstRow[from]], values: found };
};

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

/** Finds the first rating that has the row and column of the one before. With `bits` those of a row and column are sorted by value. */
function findRepeated(offsets: Int32Array, from: number, to: number, columns: Uint32Array, bits: Uint32Array | undefined): readonly [row: number, column: number] {
  let [firstRow, firstColumn] = [-1, -1];
  for (let row = from; row < to; row++) {
    for (let k = offsets[row] + 1; k < offsets[row + 1]; k++) {
      if (columns[k] !== columns[k - 1]) continue;
      if (firstRow < 0) [firstRow, firstColumn] = [row, columns[k]];
      if (bits === undefined) return [firstRow, firstColumn];
      const first = k - 1;
      while (k < offsets[row + 1] && columns[k] === columns[first]) k++;
      new Float32Array(bits.buffer, bits.byteOffset + 4 * first, k - first).sort();
    }
  }
  return [firstRow, firstColumn];
}
