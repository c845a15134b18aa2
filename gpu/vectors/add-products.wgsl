// Template: with FIRST, n and the sums over ratings are added too.

#import parts/main
{
  #import parts/number
  // Entry: row, first slot, n, number of slots.
  let entry = work[number];
  for (var quad = thread; quad < USED; quad += THREADS) {
    var sum = vec4f();
    for (var slot = entry.y; slot < entry.y + entry.w; slot++) {
      sum += slots[slot * SLOT_QUADS + quad];
    }
    var place = quad;
{%- if FIRST %}
    if (quad == QUADS) {
      sum.x = f32(entry.z);
    }
    if (quad > QUADS) {
      place = quad + 3;
    }
{%- endif %}
    sums[entry.x * ROW_QUADS + place] += sum;
  }
}
