var<workgroup> partial: array<vec4f, THREADS>;

#import parts/main
{
  #import parts/share-of-rows
  var sum = vec4f();
  for (var row = first + thread; row < min(first + ROWS, params.to_row); row += THREADS) {
    let count = offsets[row + 1] - offsets[row];
    if (count > 0) {
      let own = bias[row];
      sum += own * vec4f(f32(count) * own, own, totals[row], 0.0);
    }
  }
  #import parts/sum-threads
}
