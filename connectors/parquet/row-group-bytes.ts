import type { Data } from 'apache-arrow';

/**
 * Bytes of rows, in Arrow's layout, at which a row group ends before it has all its rows: the whole group is
 * encoded in memory.
 */
export const LARGEST_ROW_GROUP = 64 * 2 ** 20;

/**
 * Bytes of a column's rows. Of text and lists only these rows count, although a slice shares the whole
 * buffer.
 */
export function dataBytes({ length, valueOffsets, values, children, stride }: Data): number {
  const below = children.reduce((sum, child) => sum + dataBytes(child), 0);
  if (!(valueOffsets?.length > 0)) return below + (values?.BYTES_PER_ELEMENT ?? 0) * length * stride;
  const span = Number(valueOffsets[length]) - Number(valueOffsets[0]);
  return (
    valueOffsets.BYTES_PER_ELEMENT * length +
    (children.length === 0 ? span : (below * span) / Math.max(1, children[0].length))
  );
}
