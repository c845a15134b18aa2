// Template: one thread for each element needs no memory to share.
// LANES threads share an element of the output, which has both triangles.

{% if LANES > 1 -%}
var<workgroup> parts: array<f32, THREADS>;
{%- endif %}

#import parts/main
{
  // Neighbouring threads have neighbouring elements.
  let at = (group.y * groups.x + group.x) * ELEMENTS + thread % ELEMENTS;
  let lane = thread / ELEMENTS;
  let row = at / STRIDE;
  let column = at % STRIDE;
  // Index in a slot of the element at (row, column) or its mirror image in the lower triangle, which is
  // stored in 16 x 16 tiles. Elements beyond the rank are not read.
  let down = max(row, column);
  let across = min(row, column);
  let tile = down / 16;
  let place = (tile * (tile + 1) / 2 + across / 16) * 256 + down % 16 * 16 + across % 16;
  var sum = 0.0;
  if (down < RANK) {
    for (var slot = lane; slot < params.slot_count; slot += LANES) {
      sum += slots[slot * SLOT + place];
    }
  }
{%- if LANES > 1 %}
  parts[thread] = sum;
  workgroupBarrier();
{%- endif %}
  if (lane == 0 && row < STRIDE) {
{%- if LANES > 1 %}
    for (var other = 1u; other < LANES; other++) {
      sum += parts[other * ELEMENTS + thread];
    }
{%- endif %}
    gram[at] = params.weight * sum;
  }
}
