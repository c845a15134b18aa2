import { type Partition, partitionBytes, sharedArray, type SharedColumn } from '../../engine/partition.ts';
import type { WireMemory } from '../../engine/run/device.ts';
import { strideOf, vectorLayouts } from './resources.ts';

/** Bytes that a partition takes on the device once a task names it; 0 for layouts that stay on the host. */
export function deviceBytes(partition: Partition): number {
  const { layout, rows, columns, width } = partition;
  if (layout === 'factors')
    return rows === 0 ? 0 : rows * strideOf(width ?? columns.values.length / rows) * 4;
  return layout === 'rating-block' || layout === 'rating-list' || vectorLayouts.includes(layout)
    ? partitionBytes(partition)
    : 0;
}

/**
 * The columns of rows that are sent to another device: a view of the first `bytes` bytes of the memory that
 * was allocated for them, or a reference to memory files. `form` is the type of their numbers.
 */
export function wireIn(
  memory: WireMemory,
  form: 'f32' | 'f16',
  bytes: number,
): Pick<Partition, 'columns' | 'inFiles'> {
  if ('files' in memory) return { columns: {}, inFiles: { memory, form, bytes } };
  return {
    columns: {
      values: form === 'f16' ? new Uint16Array(memory, 0, bytes / 2) : new Float32Array(memory, 0, bytes / 4),
    },
  };
}

/** The column itself when its memory is shared, else a copy, in shared memory where the program has it. */
export function sharedCopy<Column extends SharedColumn>(column: Column): Column {
  if (typeof SharedArrayBuffer !== 'undefined' && column.buffer instanceof SharedArrayBuffer) return column;
  const bytes = sharedArray(Uint8Array, column.byteLength);
  bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return new (column.constructor as new (buffer: ArrayBufferLike) => Column)(bytes.buffer);
}
