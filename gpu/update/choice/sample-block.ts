/** A CSR block of ratings in host memory: the columns of layout rating-block. */
export interface HostRatings {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Takes a sample of a block for timing: whole rows, evenly spaced and in order, with about `limit` ratings in
 * total. Returns the block itself if it has at most 1.5 times that number. Since the rows have their full
 * lengths, a variant takes the same time for a rating as with the block, except for effects of the number of
 * rows.
 */
export function sampleRows(block: HostRatings, limit: number): HostRatings {
  const { offsets, indices, values } = block;
  const rows = offsets.length - 1;
  const ratings = offsets[rows];
  if (ratings <= 1.5 * limit) return block;
  const count = Math.max(1, Math.round((rows * limit) / ratings));
  const taken = Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * rows) / count));
  const sampled = new Int32Array(count + 1);
  taken.forEach((row, i) => (sampled[i + 1] = sampled[i] + offsets[row + 1] - offsets[row]));
  const result = {
    offsets: sampled,
    indices: new Uint32Array(sampled[count]),
    values: new Float32Array(sampled[count]),
  };
  taken.forEach((row, i) => {
    result.indices.set(indices.subarray(offsets[row], offsets[row + 1]), sampled[i]);
    result.values.set(values.subarray(offsets[row], offsets[row + 1]), sampled[i]);
  });
  return result;
}
