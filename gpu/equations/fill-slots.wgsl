// Template: code for biases is left out if there are none, since slots then have no room for s and t.

#import parts/triangle

#import parts/main
{
  #import parts/number
  let source = (params.first + number) * params.stride;
  let n = u32(round(equations[source + N]));
  if (thread == 0) {
    // Entry: row, first slot, n, number of slots. A row without ratings has no slot.
    work[number] = vec4u(params.row + number, number, n, min(n, 1));
  }
  if (n == 0) {
    return;
  }
  for (var at = thread; at < SLOT_B; at += THREADS) {
    let tile = triangle_place(at / 256);
    let row = 16 * tile.x + at % 256 / 16;
    let column = 16 * tile.y + at % 16;
    let low = max(row, column);
    var value = 0.0;
    if (low < RANK) {
      value = equations[source + low * (low + 1) / 2 + min(row, column)];
    }
    slots[number * SLOT + at] = value;
  }
  let vectors = number * SLOT + SLOT_B;
  for (var k = thread; k < PADDED; k += THREADS) {
    slots[vectors + k] = select(0.0, equations[source + B + k], k < RANK);
{%- if biases %}
    slots[vectors + PADDED + k] = select(0.0, equations[source + N + 1 + k], k < RANK);
{%- endif %}
  }
{%- if biases %}
  if (thread == 0) {
    slots[vectors + 2 * PADDED] = equations[source + N + 1 + RANK];
  }
{%- endif %}
}
