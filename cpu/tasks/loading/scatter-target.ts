import type { TaskScope } from '../../handler.ts';

/** The arrays that scattering tasks fill and sort-bands orders; values as their bits, so that ratings and row numbers go alike. */
export function scatterTarget(scope: TaskScope, block = 'block') {
  const { offsets, indices, values } = scope.partition(block).columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return { offsets, indices, bits, rows: scope.partition('rows').columns.rows as Uint32Array };
}
