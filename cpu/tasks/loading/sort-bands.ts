import type { TaskHandler } from '../../handler.ts';
import { scatterTarget } from './scatter-target.ts';

/** See `sort-bands` of KernelTasks. */
export const sortBands: TaskHandler<'sort-bands'> = (scope) => {
  const { from, to, columns, ordered } = scope.params;
  const firstRow = scope.partition('bands').columns.firstRow as Int32Array;
  const { offsets, indices, bits, rows } = scatterTarget(scope);
  const columnCursors = new Int32Array(ordered ? 0 : columns + 1);
  let copy = new Uint32Array(0);
  for (let band = from; band < to && !scope.cancelled(); band++) {
    const [low, high] = [offsets[firstRow[band]], offsets[firstRow[band + 1]]];
    // The band's ratings as triples (row, column, bits) in scratch that stays in the core's cache.
    if (copy.length < 3 * (high - low)) copy = new Uint32Array(3 * (high - low));
    if (ordered) copyBand(rows, indices, bits, low, high, copy);
    else copyBandByColumn(rows, indices, bits, low, high, copy, columnCursors);
    const cursors = offsets.slice(firstRow[band], firstRow[band + 1]);
    const base = firstRow[band];
    for (let t = 0; t < 3 * (high - low); t += 3) {
      const place = cursors[copy[t] - base]++;
      rows[place] = copy[t];
      indices[place] = copy[t + 1];
      bits[place] = copy[t + 2];
    }
  }
  return { rows: offsets[firstRow[to]] - offsets[firstRow[from]] };
};

function copyBand(rows: Uint32Array, indices: Uint32Array, bits: Uint32Array, low: number, high: number, copy: Uint32Array): void {
  for (let k = low, t = 0; k < high; k++, t += 3) {
    copy[t] = rows[k];
    copy[t + 1] = indices[k];
    copy[t + 2] = bits[k];
  }
}

/** The same by a counting sort on the column, stable. `cursors`: columns + 1 numbers of scratch. */
function copyBandByColumn(rows: Uint32Array, indices: Uint32Array, bits: Uint32Array, low: number, high: number, copy: Uint32Array, cursors: Int32Array): void {
  cursors.fill(0);
  for (let k = low; k < high; k++) cursors[indices[k] + 1]++;
  for (let column = 1; column < cursors.length; column++) cursors[column] += cursors[column - 1];
  for (let k = low; k < high; k++) {
    const t = 3 * cursors[indices[k]]++;
    copy[t] = rows[k];
    copy[t + 1] = indices[k];
    copy[t + 2] = bits[k];
  }
}
