import { sharedArray } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { scatterTarget } from './scatter-target.ts';

/** See `count-columns` of KernelTasks. */
export const countColumns: TaskHandler<'count-columns'> = (scope) => {
  const { indices, first, end, bandOf } = rangeOf(scope);
  const counts = sharedArray(Int32Array, scope.params.bands);
  for (let k = first; k < end; k++) counts[bandOf[indices[k]]]++;
  return { rows: end - first, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See `scatter-columns` of KernelTasks. */
export const scatterColumns: TaskHandler<'scatter-columns'> = (scope) => {
  const { offsets, indices, bits, first, end, bandOf } = rangeOf(scope);
  const target = scatterTarget(scope, 'transposed');
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const { from, to } = scope.params;
  for (let row = from; row < to && !((row & 1023) === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const place = cursors[bandOf[indices[k]]]++;
      target.rows[place] = indices[k];
      target.indices[place] = row;
      target.bits[place] = bits[k];
    }
  }
  return { rows: end - first };
};

function rangeOf(scope: ScopeOf<'count-columns' | 'scatter-columns'>) {
  const { offsets, indices, values } = scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  return {
    offsets,
    indices,
    bits: new Uint32Array(values.buffer, values.byteOffset, values.length),
    first: offsets[scope.params.from],
    end: offsets[scope.params.to],
    bandOf: scope.partition('bands').columns.bandOf as Uint16Array,
  };
}
