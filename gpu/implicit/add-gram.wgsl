#import parts/triangle

#import parts/main
{
  #import parts/number
  // Entry: row, first slot, n, number of slots.
  let entry = work[number];
  if (entry.z == 0u) {
    return;
  }
  for (var at = thread; at < TILES * (TILES + 1) / 2 * 64; at += THREADS) {
    let place = triangle_place(at / 64);
    let row = place.x * 16 + at % 64 / 4;
    let quad = place.y * 4 + at % 4;
    slots[entry.y * SLOT_QUADS + at] += gram[row * (TILES * 4) + quad];
  }
}
