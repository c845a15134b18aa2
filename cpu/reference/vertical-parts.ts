/** Compressed rows of ratings, like blocks. */
export interface CompressedRows {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Compressed rows cut into `p` parts of about equally many columns, with indices from 0 in each; [first,
 * last) are a part's columns.
 */
export function verticalParts(
  { offsets, indices, values }: CompressedRows,
  columns: number,
  p: number,
): (CompressedRows & { readonly first: number; readonly last: number })[] {
  const rows = offsets.length - 1;
  return Array.from({ length: p }, (_, part) => {
    const [first, last] = [part, part + 1].map((at) => Math.floor((at * columns) / p));
    const own = new Int32Array(rows + 1);
    const kept: number[] = [];
    for (let row = 0; row < rows; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        if (indices[k] >= first && indices[k] < last) kept.push(k);
      own[row + 1] = kept.length;
    }
    return {
      offsets: own,
      indices: Uint32Array.from(kept, (k) => indices[k] - first),
      values: Float32Array.from(kept, (k) => values[k]),
      first,
      last,
    };
  });
}
