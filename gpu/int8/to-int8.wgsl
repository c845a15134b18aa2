#import parts/rounded-quad

fn quad_of(row: u32, quad: u32) -> u32 {
  if (row >= params.rows || quad >= QUADS) {
    return 0;
  }
  return rounded_quad(half[row * QUADS + quad], maxima[quad]);
}

#import parts/main-by-id
{
  let at = (id.y * size.x + id.x) * THREADS + thread;
  let row = at / PIECES;
  let quad = 4 * (at % PIECES);
  if (row <= params.rows) {
    rounded[at] = vec4u(
      quad_of(row, quad),
      quad_of(row, quad + 1),
      quad_of(row, quad + 2),
      quad_of(row, quad + 3)
    );
  }
  if (at < QUADS) {
    scales[at] = maxima[at] / 127.0;
  }
}
