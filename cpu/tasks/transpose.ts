import type { TaskHandler } from '../handler.ts';

/** See TransposeTask. */
export const transpose: TaskHandler = (scope) => {
  const { offsets, indices, values } = scope.partition('block').columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array | Uint32Array;
  };
  const target = scope.partition('transposed').columns as { indices: Uint32Array; values: Float32Array | Uint32Array };
  const [targetIndices, targetValues] = [target.indices, target.values];
  // A private copy: inputs are never written.
  const cursors = Int32Array.from(scope.partition('cursors').columns.cursors as Int32Array);
  const [from, to] = [scope.params.from as number, scope.params.to as number];
  for (let row = from; row < to && !((row & 1023) === 0 && scope.cancelled()); row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const place = cursors[indices[k]]++;
      targetIndices[place] = row;
      targetValues[place] = values[k];
    }
  }
  return { rows: offsets[to] - offsets[from] };
};
