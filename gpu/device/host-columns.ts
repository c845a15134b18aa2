import { type Partition, partitionBytes, type SharedColumn } from '../../engine/partition.ts';
import { strideOf, vectorLayouts } from './resources.ts';

/** Bytes that a partition takes on the device once a task names it; 0 for layouts that stay on the host. */
export function deviceBytes(partition: Partition): number {
  const { layout, rows, columns, width } = partition;
  if (layout === 'factors') return rows === 0 ? 0 : rows * strideOf(width ?? columns.values.length / rows) * 4;
  return layout === 'rating-block' || layout === 'rating-list' || vectorLayouts.includes(layout) ? partitionBytes(partition) : 0;
}

/** The column itself when its memory is shared, else a copy in shared memory. */
export function sharedCopy<Column extends SharedColumn>(column: Column): Column {
  if (column.buffer instanceof SharedArrayBuffer) return column;
  const memory = new SharedArrayBuffer(column.byteLength);
  new Uint8Array(memory).set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return new (column.constructor as new (buffer: SharedArrayBuffer) => Column)(memory);
}
