var<workgroup> partial: array<vec4f, THREADS>;

#import parts/main
{
  #import parts/share-of-rows
  var sum = vec4f();
  for (var row = first + thread; row < min(first + ROWS, params.to_row); row += THREADS) {
    let count = offsets[row + 1] - offsets[row];
    if (count > 0) {
      let own = bias[row];
      let apart = own - params.drawn * prior_bias[row];
      let n = f32(count);
      sum += vec4f(n * apart * apart, apart * apart, totals[row] * own, n * own * own);
    }
  }
  #import parts/sum-threads
}
