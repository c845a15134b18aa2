import type { TaskHandler } from '../../handler.ts';
import { LoadingMemory } from './loading-memory.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** Most bits of a sort digit, so that the digit's counters fit the core's first-level cache. */
const DIGIT_BITS = 12;

export const sortBands: TaskHandler<'sort-bands'> = (scope) => {
  const { from, to, columnBits, order } = scope.params;
  const { firstRow } = bandsOf(scope);
  const { offsets, keys, bits } = keysOf(scope);
  const memory = LoadingMemory.own();
  const { kernels } = memory;
  const found = { extra: 0, row: -1, column: -1 };
  for (let band = from; band < to && !scope.cancelled(); band++) {
    const [firstOf, endOf] = [firstRow[band], firstRow[band + 1]];
    const [low, high] = [offsets[firstOf], offsets[endOf]];
    const digits = digitsOf(order === 'kept' ? columnBits : 0, columnBits + bitsBelow(endOf - firstOf));
    // If all keys are equal, each rating except the first repeats it.
    if (low === high || (order === 'kept' && digits.length === 0)) continue;
    const count = high - low;
    const [first, second, counters] = memory.layOut(2 * count, 2 * count, 2 ** DIGIT_BITS);
    memory.words(second, count).set(keys.subarray(low, high));
    memory.words(second + 4 * count, count).set(bits.subarray(low, high));
    kernels.pairUp(second, second + 4 * count, count, first);
    let [source, target] = [first, second];
    for (const { shift, width } of digits) {
      kernels.sortByDigit(source, count, target, shift, width, counters);
      [source, target] = [target, source];
    }
    const repeated = kernels.takeApart(source, count, columnBits, target, target + 4 * count);
    keys.set(memory.words(target, count), low);
    bits.set(memory.words(target + 4 * count, count), low);
    if (order === 'kept' || repeated === 0) continue;
    const [row, column] = findRepeated(
      offsets,
      firstOf,
      endOf,
      keys,
      order === 'by-value' ? bits : undefined,
    );
    if (found.extra === 0) [found.row, found.column] = [row, column];
    found.extra += repeated;
  }
  return { rows: offsets[firstRow[to]] - offsets[firstRow[from]], values: found };
};

/** Bits of the numbers below `end`. */
function bitsBelow(end: number): number {
  return 32 - Math.clz32(Math.max(0, end - 1));
}

/**
 * Cuts the bits from `low` to `high` of a key into digits, the lowest first, for a sequence of stable sorts.
 * Empty if there are no bits, since then all keys are equal.
 */
function digitsOf(low: number, high: number): readonly { readonly shift: number; readonly width: number }[] {
  const count = Math.ceil((high - low) / DIGIT_BITS);
  const width = Math.ceil((high - low) / count);
  return Array.from({ length: count }, (_, digit) => ({
    shift: low + digit * width,
    width: Math.min(width, high - low - digit * width),
  }));
}

/**
 * Finds the first rating with the same row and column as the previous rating. If `bits` is given, also sorts
 * ratings of equal row and column by value.
 */
function findRepeated(
  offsets: Int32Array,
  from: number,
  to: number,
  columns: Uint32Array,
  bits: Uint32Array | undefined,
): readonly [row: number, column: number] {
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
