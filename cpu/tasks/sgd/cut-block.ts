import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** Rows between two looks at the cancel flag. */
const CHUNK_ROWS = 8_192;

/**
 * See `cut-block` of KernelTasks. Two passes: the parts' row pointers, then their ratings, which are runs of
 * each row.
 */
export const cutBlock: TaskHandler<'cut-block'> = (scope) => {
  const { from, to, columnStarts, local = false } = scope.params;
  const { offsets, indices, values } = scope.partition('block').columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  const rows = to - from;
  const parts = columnStarts.length - 1;
  const cuts = Array.from({ length: parts }, () => sharedArray(Int32Array, rows + 1));
  for (let row = 0; row < rows && !(row % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    let k = offsets[from + row];
    const end = offsets[from + row + 1];
    for (let part = 0; part < parts; part++) {
      const first = k;
      while (k < end && indices[k] < columnStarts[part + 1]) k++;
      cuts[part][row + 1] = cuts[part][row] + k - first;
    }
  }
  const targets = cuts.map((cut, part) => ({
    first: local ? columnStarts[part] : 0,
    offsets: cut,
    indices: sharedArray(Uint32Array, cut[rows]),
    values: sharedArray(Float32Array, cut[rows]),
  }));
  for (let row = 0; row < rows && !(row % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    let k = offsets[from + row];
    for (const target of targets) {
      for (let place = target.offsets[row]; place < target.offsets[row + 1]; place++, k++) {
        target.indices[place] = indices[k] - target.first;
        target.values[place] = values[k];
      }
    }
  }
  const partitions: Record<`part.${number}`, Partition> = {};
  targets.forEach(
    ({ first: _first, ...columns }, part) =>
      (partitions[`part.${part}`] = { layout: 'rating-block', rows, columns }),
  );
  return { rows: offsets[to] - offsets[from], partitions };
};
