// Template: code of biases uses workgroup memory that only variants with biases have.
// Functions that add a row's slots (gpu/device/slots.ts) to its A and b, without the terms of the eliminated
// bias.
//
// is_feature: for four consecutive elements of a slot, true if an element is not padding. Padding is in the
// rows of the last tile row of A, and at the end of b.
fn is_feature(at: u32) -> vec4<bool> {
  let within = at - LAST_TILES;
  let row = STRIDE - 16 + within % 64 / 4;
  let of_matrix = vec4<bool>(row < RANK);
  let of_bias = vec4u(4 * (at - BIAS_START)) + vec4u(0, 1, 2, 3) < vec4u(RANK);
  return select(select(of_matrix, of_bias, at >= BIAS_START), vec4<bool>(true), at < LAST_TILES);
}

{% if biases %}
fn summed(base: u32, slot_count: u32, at: u32) -> vec4f {
  var sum = slots[base + at];
  for (var slot = 1u; slot < slot_count; slot++) {
    sum += slots[base + slot * SLOT_QUADS + at];
  }
  return sum;
}

// The terms of the eliminated bias for the elements at `at`: s s^T / weight for A, s t / weight for b.
fn of_bias(at: u32, scale: f32) -> vec4f {
  if (at >= BIAS_START) {
    return ones[at - BIAS_START] * (ones[QUADS].x * scale);
  }
  let tile = triangle_place(at / 64);
  let within = at % 64;
  let row = 16 * tile.x + within / 4;
  return ones[4 * tile.y + within % 4] * (ones[row / 4][row % 4] * scale);
}
{% endif %}

// Adds a row's slots, the partial sums of its A and b, in order. Padding in rows is set to 0. Padding in
// columns is right of the diagonal, and no thread reads it.
fn gather(base: u32, slot_count: u32, scale: f32, thread: u32) {
  for (var at = thread; at < BIAS_START + QUADS; at += THREADS) {
    var sum = slots[base + at];
    for (var slot = 1u; slot < slot_count; slot++) {
      sum += slots[base + slot * SLOT_QUADS + at];
    }
{% if biases %}
    sum -= of_bias(at, scale);
{% endif %}
    sum = select(vec4f(), sum, is_feature(at));
    keep_quad(base, at, sum);
  }
}
