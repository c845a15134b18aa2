// The threads of a workgroup read its rows together, four elements each.

var<workgroup> partial: array<vec2f, THREADS>;

#import parts/main
{
  #import parts/share-of-rows
  let quads = params.stride / 4;
  let end = min(ROWS, params.to_row - first) * quads;
  var sum = vec2f();
  for (var at = thread; at < end; at += THREADS) {
    let x = factors[first * quads + at] - params.drawn * prior[first * quads + at];
    let shift = shifts[first + at / quads];
    var weights = vec4f(params.others);
    if (at % quads == 0u) {
      weights = vec4f(params.first, params.second, params.others, params.others);
    }
    if (shift > 0.0) {
      sum += vec2f(shift * dot(x, x), dot(weights * x, x));
    }
  }
  #import parts/sum-threads
}
