import { type Partition, partitionBytes, sharedArray, type SharedColumn } from '../../engine/partition.ts';
import type { WireMemory } from '../../engine/run/device.ts';
import type { Wire } from '../../engine/run/step.ts';
import { strideOf, vectorLayouts } from './resources.ts';

/** Numbers of a row of a matrix on the device, with padding; undefined for other partitions. */
export function deviceStride({ layout, rows, columns, width }: Partition): number | undefined {
  if (layout !== 'factors' || rows === 0) return undefined;
  return strideOf(width ?? columns.values.length / rows);
}

/** Bytes that a partition takes on the device once a task names it; 0 for layouts that stay on the host. */
export function deviceBytes(partition: Partition): number {
  const { layout, rows } = partition;
  if (layout === 'factors') return 4 * rows * (deviceStride(partition) ?? 0);
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
  form: Wire,
  bytes: number,
): Pick<Partition, 'columns' | 'inFiles'> {
  if ('files' in memory) {
    const arrived = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(bytes / memory.pieceBytes)));
    return { columns: {}, inFiles: { memory, form, bytes, arrived } };
  }
  return {
    columns: {
      values:
        form === 'i8'
          ? new Uint8Array(memory, 0, bytes)
          : form === 'f16'
            ? new Uint16Array(memory, 0, bytes / 2)
            : new Float32Array(memory, 0, bytes / 4),
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
