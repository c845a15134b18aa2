var<workgroup> shares: array<vec2f, THREADS>;

// Adds two numbers of each thread over the LANES threads of a row, of which only the first `among` have a
// number.
fn totals_among(among: u32, mine: vec2f, thread: u32) -> vec2f {
  workgroupBarrier();
  shares[thread] = mine;
  workgroupBarrier();
  let first = thread / LANES * LANES;
  if (LANES > 64) {
    // The threads after the first `among` have zeros.
    for (var half = LANES / 2; half > 0; half /= 2) {
      if (thread - first < half) {
        shares[thread] += shares[thread + half];
      }
      workgroupBarrier();
    }
    return shares[first];
  }
  var sum = vec2f();
  for (var lane = 0u; lane < among; lane++) {
    sum += shares[first + lane];
  }
  return sum;
}

// The same over the threads that have features.
fn totals(one: f32, other: f32, thread: u32) -> vec2f {
  return totals_among(SHARES, vec2f(one, other), thread);
}
fn total(mine: f32, thread: u32) -> f32 {
  return totals(mine, 0.0, thread).x;
}
