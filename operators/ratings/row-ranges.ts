import type { RowRange } from '../../engine/plan/stages.ts';

/**
 * Cuts the rows of a block into at most `parts` ranges of about equal cost. A row costs its number of ratings
 * plus `rowCost`. The cuts depend only on the data, never on the number of threads.
 *
 * - `offsets`: row pointers (rows + 1)
 * - `exactly`: return exactly `parts` ranges; there must be at least that many rows
 * - `shares`: shares of the total cost, with sum 1; default: equal shares
 */
export function balancedRanges(
  offsets: Int32Array | Float64Array,
  parts: number,
  rowCost = 16,
  { exactly = false, shares }: { readonly exactly?: boolean; readonly shares?: readonly number[] } = {},
): RowRange[] {
  const rows = offsets.length - 1;
  if (parts === 1) return rows === 0 ? [] : [{ from: 0, to: rows }];
  const total = offsets[rows] + rows * rowCost;
  const ranges: RowRange[] = [];
  let [from, shared] = [0, 0];
  for (let part = 1; part <= parts && from < rows; part++) {
    shared += shares?.[part - 1] ?? 0;
    const target = shares === undefined ? (total * part) / parts : total * shared;
    const most = exactly ? rows - (parts - part) : rows;
    // Binary search for the largest range whose cost does not exceed the target.
    let [to, beyond] = [from + 1, most + 1];
    while (beyond - to > 1) {
      const middle = (to + beyond) >>> 1;
      if (offsets[middle] + middle * rowCost <= target) to = middle;
      else beyond = middle;
    }
    if (part === parts) to = rows;
    ranges.push({ from, to });
    from = to;
  }
  return ranges;
}

/**
 * Row offsets from the number of ratings of each row. They are float64, since there may be more ratings than
 * a block holds.
 */
export function offsetsOf(counts: Int32Array): Float64Array {
  const offsets = new Float64Array(counts.length + 1);
  for (let row = 0; row < counts.length; row++) offsets[row + 1] = offsets[row] + counts[row];
  return offsets;
}

/**
 * Number of tasks for a pass over a block: enough for many threads, and few enough to make their overhead
 * negligible.
 */
export function taskCount(ratings: number): number {
  return Math.max(1, Math.min(128, Math.ceil(ratings / 4096)));
}

/** Cuts 0 .. count into at most `parts` ranges of about the same length. */
export function evenRanges(count: number, parts: number): RowRange[] {
  const used = Math.min(parts, count);
  return Array.from({ length: used }, (_, part) => ({
    from: Math.floor((count * part) / used),
    to: Math.floor((count * (part + 1)) / used),
  }));
}

/** Cuts 0 .. count into ranges of `size`, of which the last may be shorter. */
export function rangesOfSize(count: number, size: number): RowRange[] {
  return Array.from({ length: Math.ceil(count / size) }, (_, at) => ({
    from: at * size,
    to: Math.min(count, (at + 1) * size),
  }));
}

/** Cuts 0 .. count into ranges whose lengths are proportional to the shares; the shares have the sum 1. */
export function sharedRanges(count: number, shares: readonly number[]): RowRange[] {
  let [from, shared] = [0, 0];
  return shares.map((share, part) => {
    shared += share;
    const range = { from, to: part === shares.length - 1 ? count : Math.round(count * shared) };
    from = range.to;
    return range;
  });
}
