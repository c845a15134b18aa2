import { sharedArray } from '../../engine/partition.ts';
import type { TaskHandler } from '../handler.ts';

/** See CountColumnsTask. */
export const countColumns: TaskHandler = (scope) => {
  const { offsets, indices } = scope.partition('block').columns as { offsets: Int32Array; indices: Uint32Array };
  const counts = sharedArray(Int32Array, scope.params.columns as number);
  const first = offsets[scope.params.from as number];
  const end = offsets[scope.params.to as number];
  for (let k = first; k < end; k++) counts[indices[k]]++;
  return { rows: end - first, partitions: { counts: { layout: 'counts', rows: counts.length, columns: { counts } } } };
};
