// One value per thread, copied as u32, so that NaN keeps its bits.

#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.count) {
    let value = params.first + at;
    let row = value / params.columns;
    rows[at] = padded[row * params.stride + (value - row * params.columns)];
  }
}
