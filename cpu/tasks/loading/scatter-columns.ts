import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';
import { bandsOf, keysOf } from './scatter-pairs.ts';

/** See `count-columns` of KernelTasks. */
export const countColumns: TaskHandler<'count-columns'> = (scope) => {
  const { bands, starts, rowBits } = scope.params;
  const { offsets, keys: columns } = keysOf(scope.partition('block'));
  const { placeOf } = bandsOf(scope);
  const counts = sharedArray(Int32Array, (starts.length - 1) * bands);
  const [first, end] = [offsets[starts[0]], offsets[starts[starts.length - 1]]];
  for (let group = 0; group + 1 < starts.length && !scope.cancelled(); group++) {
    const own = counts.subarray(group * bands, (group + 1) * bands);
    for (let k = offsets[starts[group]]; k < offsets[starts[group + 1]]; k++) own[placeOf[columns[k]] >>> rowBits]++;
  }
  return { rows: end - first, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See `scatter-columns` of KernelTasks. */
export const scatterColumns: TaskHandler<'scatter-columns'> = (scope) => {
  const { offsets, keys: columns, bits } = keysOf(scope.partition('block'));
  const { placeOf } = bandsOf(scope);
  const target = keysOf(scope.partition('transposed'));
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { from, to, columnBits, rowBits } = scope.params;
  const rowMask = 2 ** rowBits - 1;
  for (let row = from; row < to && !((row & 1023) === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const column = placeOf[columns[k]];
      const place = cursors[column >>> rowBits]++;
      target.keys[place] = ((column & rowMask) << columnBits) | row;
      target.bits[place] = bits[k];
    }
  }
  return { rows: offsets[to] - offsets[from] };
};
