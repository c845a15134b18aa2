import { sharedArray } from '../../engine/partition.ts';
import type { TaskHandler, TaskScope } from '../handler.ts';

/** See CountColumnsTask. */
export const countColumns: TaskHandler = (scope) => {
  const { indices, first, end, bandOf } = rangeOf(scope);
  const counts = sharedArray(Int32Array, scope.params.bands as number);
  for (let k = first; k < end; k++) counts[bandOf[indices[k]]]++;
  return { rows: end - first, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};

/** See ScatterColumnsTask. */
export const scatterColumns: TaskHandler = (scope) => {
  const { offsets, indices, bits, first, end, bandOf } = rangeOf(scope);
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const triples = scope.partition('triples').columns.triples as Uint32Array;
  const [from, to] = [scope.params.from as number, scope.params.to as number];
  for (let row = from; row < to && !((row & 1023) === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const place = 3 * cursors[bandOf[indices[k]]]++;
      triples[place] = indices[k];
      triples[place + 1] = row;
      triples[place + 2] = bits[k];
    }
  }
  return { rows: end - first };
};

function rangeOf(scope: TaskScope) {
  const { offsets, indices, values } = scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  return {
    offsets,
    indices,
    bits: new Uint32Array(values.buffer, values.byteOffset, values.length),
    first: offsets[scope.params.from as number],
    end: offsets[scope.params.to as number],
    bandOf: scope.partition('bands').columns.bandOf as Uint16Array,
  };
}
