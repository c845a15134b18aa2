// The order of operations is the same as in count-before, so that equal products have equal bits.

const LOWEST = -3.40282346638528859812e38f;

#import parts/main
{
  let entry = params.first + (group.y * groups.x + group.x) * THREADS + thread;
  if (entry >= params.last) {
    return;
  }
  // The last row that starts at or before the entry.
  var row = params.from_row;
  var end = params.to_row;
  while (end - row > 1) {
    let middle = (row + end) / 2;
    if (u32(offsets[middle]) <= entry) {
      row = middle;
    } else {
      end = middle;
    }
  }
  let x_at = row * params.quads;
  let theta_at = listed[entry] * params.quads;
  var score = 0.0;
  for (var k = 0u; k < params.quads; k++) {
    let x = row_factors[x_at + k];
    let theta = column_factors[theta_at + k];
    score = fma(x.x, theta.x, fma(x.y, theta.y, fma(x.z, theta.z, fma(x.w, theta.w, score))));
  }
  let place = entry - params.first;
  thresholds[place] = LOWEST;
  if (score > LOWEST) {
    thresholds[place] = score;
  }
  counts[place] = vec2u();
}
