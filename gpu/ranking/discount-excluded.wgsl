// A thread has every THREADS-th excluded column. A score is computed with the same order of operations as in
// count-before, so that equal products have equal bits. An excluded column that is repeated is subtracted once.

const LOWEST = -3.40282346638528859812e38f;

#import parts/main
{
  let row = params.from_row + group.y * groups.x + group.x;
  if (row >= params.to_row) {
    return;
  }
  let start = u32(offsets[row]);
  let end = u32(offsets[row + 1]);
  if (start == end) {
    return;
  }
  let exclude_start = u32(exclude_offsets[row]);
  let exclude_end = u32(exclude_offsets[row + 1]);
  let x_at = row * params.quads;
  for (var entry = exclude_start + thread; entry < exclude_end; entry += THREADS) {
    let column = excluded[entry];
    if (entry > exclude_start && excluded[max(entry, 1) - 1] == column) {
      continue;
    }
    let theta_at = column * params.quads;
    var score = 0.0;
    for (var k = 0u; k < params.quads; k++) {
      let x = row_factors[x_at + k];
      let theta = column_factors[theta_at + k];
      score = fma(x.x, theta.x, fma(x.y, theta.y, fma(x.z, theta.z, fma(x.w, theta.w, score))));
    }
    for (var k = start; k < end; k++) {
      let threshold = thresholds[k - params.first];
      if (score > threshold) {
        atomicSub(&counts[2 * (k - params.first)], 1u);
      } else if (score == threshold && score > LOWEST) {
        atomicSub(&counts[2 * (k - params.first) + 1], 1u);
      }
    }
  }
}
