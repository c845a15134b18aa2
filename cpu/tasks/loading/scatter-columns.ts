import { sharedArray } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** See `count-columns` of KernelTasks. */
export const countColumns: TaskHandler<'count-columns'> = (scope) => {
  const { keys: columns, first, end } = rangeOf(scope);
  const { bandOf } = bandsOf(scope);
  const counts = sharedArray(Int32Array, scope.params.bands);
  for (let k = first; k < end; k++) counts[bandOf[columns[k]]]++;
  return { rows: end - first, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See `scatter-columns` of KernelTasks. */
export const scatterColumns: TaskHandler<'scatter-columns'> = (scope) => {
  const { offsets, keys: columns, bits, first, end } = rangeOf(scope);
  const { bandOf, firstRow } = bandsOf(scope);
  const target = keysOf(scope.partition('transposed'));
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { from, to, columnBits } = scope.params;
  for (let row = from; row < to && !((row & 1023) === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const column = columns[k];
      const band = bandOf[column];
      const place = cursors[band]++;
      target.keys[place] = ((column - firstRow[band]) << columnBits) | row;
      target.bits[place] = bits[k];
    }
  }
  return { rows: end - first };
};

function rangeOf(scope: ScopeOf<'count-columns' | 'scatter-columns'>) {
  const block = keysOf(scope.partition('block'));
  return { ...block, first: block.offsets[scope.params.from], end: block.offsets[scope.params.to] };
}
