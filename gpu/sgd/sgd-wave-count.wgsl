var<workgroup> tally: array<atomic<u32>, MOST_BANDS>;

#import parts/main
{
  let row_band = group.y * groups.x + group.x;
  if (row_band >= params.row_bands) {
    return;
  }
  for (var band = thread; band < params.column_bands; band += THREADS) {
    atomicStore(&tally[band], 0u);
  }
  workgroupBarrier();
  let end = u32(offsets[row_starts[row_band + 1u]]);
  for (var at = u32(offsets[row_starts[row_band]]) + thread; at < end; at += THREADS) {
    atomicAdd(&tally[band_of[indices[at]]], 1u);
  }
  workgroupBarrier();
  for (var band = thread; band < params.column_bands; band += THREADS) {
    counts[row_band * params.column_bands + band] = atomicLoad(&tally[band]);
  }
}
