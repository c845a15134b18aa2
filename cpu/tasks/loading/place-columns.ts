import type { TaskHandler } from '../../handler.ts';

interface Block {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/** Rows between two checks for cancellation. */
const CHUNK_ROWS = 8_192;

/** See `place-columns` of KernelTasks. */
export const placeColumns: TaskHandler<'place-columns'> = (scope) => {
  const { from, to, columnStarts, local } = scope.params;
  const { offsets, indices, values } = scope.partition('block').columns as unknown as Block;
  const parts = columnStarts
    .slice(1)
    .map((_, part) => scope.partition(`part.${part}`).columns as unknown as Block);
  for (let row = from; row < to && !((row - from) % CHUNK_ROWS === 0 && scope.cancelled()); row++) {
    let k = offsets[row];
    for (let part = 0; part < parts.length; part++) {
      const target = parts[part];
      const [end, first] = [target.offsets[row + 1], local ? columnStarts[part] : 0];
      for (let place = target.offsets[row]; place < end; place++, k++) {
        target.indices[place] = indices[k] - first;
        target.values[place] = values[k];
      }
    }
  }
  return { rows: offsets[to] - offsets[from] };
};
