// Sums n_u b_u^2, b_u^2 and T_u b_u over the rows u with ratings; b_u: the row's bias, n_u: its number of
// ratings, T_u: its number in `totals`. Each workgroup writes one vector of sums; the host adds these in
// float64.

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
