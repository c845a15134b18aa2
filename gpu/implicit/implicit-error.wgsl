// Four threads share STEPS consecutive ratings, and each of them has a quarter of the features.

// Double-buffered, so that one barrier a step suffices.
var<workgroup> partial: array<f32, 2 * THREADS>;

#import parts/row-of-rating

#import parts/main
{
  let number = group.y * groups.x + group.x;
  let lane = thread % 4;
  let begin = params.first + (number * (THREADS / 4) + thread / 4) * STEPS;
  if (params.first + number * (THREADS / 4) * STEPS >= params.last) {
    return;
  }
  var row = row_of(min(begin, params.last - 1));
  var row_end = u32(row_pointers[row + 1]);
  var sum = 0.0;
  for (var step = 0u; step < STEPS; step++) {
    // Threads after the last rating compute the last rating again and discard its term, since all threads
    // must reach the barrier.
    let rating = min(begin + step, params.last - 1);
    while (rating >= row_end) {
      row++;
      row_end = u32(row_pointers[row + 1]);
    }
    let x = row * QUADS + lane;
    let theta = indices[rating] * QUADS + lane;
    var product = vec4f();
    for (var part = 0u; part < QUADS; part += 4u) {
      product = fma(row_factors[x + part], column_factors[theta + part], product);
    }
    let at = (step % 2) * THREADS;
    partial[at + thread] = (product.x + product.y) + (product.z + product.w);
    workgroupBarrier();
    if (lane == 0 && begin + step < params.last) {
      let s = (partial[at + thread] + partial[at + thread + 1])
        + (partial[at + thread + 2] + partial[at + thread + 3]);
      let value = values[rating];
      let preferred = select(0.0, 1.0, value > 0.0);
      let error = preferred - s;
      sum += params.alpha * abs(value) * error * error + params.base * preferred * (1.0 - 2.0 * s);
    }
  }
  workgroupBarrier();
  #import parts/sum-threads
}
