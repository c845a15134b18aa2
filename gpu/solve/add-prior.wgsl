// Template: code for biases is left out if there are none, since slots then have no room for t.

#import parts/row-shift
{% if along %}
var<workgroup> partial: array<f32, THREADS>;
{% endif %}

#import parts/main
{
  #import parts/number
  // Entry: row, first slot, n, number of slots. A row without ratings has no slot.
  let entry = work[number];
  if (entry.z == 0) {
    return;
  }
  let slot = entry.y * SLOT;
  let shift = shift_of(entry.x);
{% if along %}
  var sum = 0.0;
{% endif %}
  for (var k = thread; k < RANK; k += THREADS) {
    let drawn = shift * prior[entry.x * PADDED + k];
    slots[slot + SLOT_B + k] += drawn;
{% if along %}
    sum = fma(drawn, previous[entry.x * PADDED + k], sum);
{% endif %}
  }
{% if along %}
  #import parts/add-threads
{% endif %}
  if (thread == 0) {
{% if biases %}
    slots[slot + SLOT_T] += own_shift_of(entry.x) * prior_bias[entry.x];
{% endif %}
{% if along %}
    slots[slot + SLOT_T + 1] += partial[0];
{% endif %}
  }
}
