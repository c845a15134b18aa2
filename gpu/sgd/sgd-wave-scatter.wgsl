// The order is the same in every run: columns ascend within a row, and bands are ranges of columns, so the
// ratings that a row has in one block are adjacent in the input.

var<workgroup> cursors: array<u32, MOST_BANDS>;

// Number of ratings directly before `at` that belong to the same row and the same band.
fn before(at: u32, first: u32, band: u32) -> u32 {
  var count = 0u;
  while (at - count > first && band_of[indices[at - count - 1u]] == band) {
    count++;
  }
  return count;
}

#import parts/main
{
  let row_band = group.y * groups.x + group.x;
  if (row_band >= params.row_bands) {
    return;
  }
  for (var band = thread; band < params.column_bands; band += THREADS) {
    cursors[band] = starts[row_band * params.column_bands + band];
  }
  let end_row = row_starts[row_band + 1u];
  for (var row = row_starts[row_band]; row < end_row; row++) {
    workgroupBarrier();
    let first = u32(offsets[row]);
    let end = u32(offsets[row + 1u]);
    for (var at = first + thread; at < end; at += THREADS) {
      let band = band_of[indices[at]];
      let place = 3u * (cursors[band] + before(at, first, band));
      ratings[place] = row;
      ratings[place + 1u] = indices[at];
      ratings[place + 2u] = bitcast<u32>(values[at]);
    }
    workgroupBarrier();
    // Then the thread with a row's last rating in a band advances the band's cursor by the number of these
    // ratings.
    for (var at = first + thread; at < end; at += THREADS) {
      let band = band_of[indices[at]];
      if (at + 1u == end || band_of[indices[min(at + 1u, end - 1u)]] != band) {
        cursors[band] += before(at, first, band) + 1u;
      }
    }
  }
}
