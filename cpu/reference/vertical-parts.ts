/** Compressed rows of ratings, like blocks. */
export interface CompressedRows {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Cuts compressed rows into `p` parts, each with the ratings of a range of columns; the ranges are about
 * equally long. A part has the columns [first, last), and its indices count from `first`.
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
