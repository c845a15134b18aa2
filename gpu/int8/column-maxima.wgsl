// For numbers >= 0 the bits of float32 have the same order as the numbers, which allows an atomic maximum. A
// workgroup reads ROWS rows; a thread reads four columns of every TEAMS-th of these rows.

var<workgroup> largest: array<atomic<u32>, 4 * QUADS>;

#import parts/main-by-id
{
  let first = (id.y * size.x + id.x) * ROWS;
  for (var column = thread; column < 4 * QUADS; column += THREADS) {
    atomicStore(&largest[column], 0u);
  }
  workgroupBarrier();
  let quad = thread % QUADS;
  var found = vec4f();
  for (var row = first + thread / QUADS; row < min(first + ROWS, params.rows); row += TEAMS) {
    let packed = half[row * QUADS + quad];
    found = max(found, abs(vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y))));
  }
  for (var i = 0u; i < 4; i++) {
    atomicMax(&largest[4 * quad + i], bitcast<u32>(found[i]));
  }
  workgroupBarrier();
  for (var column = thread; column < 4 * QUADS; column += THREADS) {
    atomicMax(&maxima[column], atomicLoad(&largest[column]));
  }
}
