#part cholesky-tiles
// Reads and writes one row's A, in 16 x 16 tiles, followed by b, in the first of the row's slots (`base` is
// its index in the buffer).
fn read_quad(base: u32, at: u32) -> vec4f {
  return slots[base + at];
}

fn keep_quad(base: u32, at: u32, content: vec4f) {
  slots[base + at] = content;
}

fn tile_start(down: u32, across: u32) -> u32 {
  return (down * (down + 1) / 2 + across) * 64;
}

// Index of the 16 elements of a row in a tile; row number F is b.
fn row_start(row: u32, tile: u32) -> u32 {
  return select(tile_start(row / 16, tile) + row % 16 * 4, BIAS_START + 4 * tile, row == STRIDE);
}

#part cholesky-gather
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

#part read-block
// Template: a thread keeps a block of A in registers, so loops over its elements must be unrolled.
{%- comment -%}
Reads the thread's block of A, in block row `down` and block column `across`, as the sum of the row's slots.
Elements beyond the rank are 0.
{%- endcomment %}
  // Column c of the block, rows 0 to 3 and 4 to 7: a_c_0 and a_c_1.
{% for c in columns %}
  var a_{{ c.at }}_0 = vec4f();
  var a_{{ c.at }}_1 = vec4f();
{% endfor %}
  let tile = vec2u(down, across) / 2;
  let first = base + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + down % 2 * 32 + across % 2 * 2;
  for (var slot = 0u; slot < slot_count; slot++) {
    let at = first + slot * SLOT_QUADS;
{% for quad in (0..1) %}
    {
{% for r in columns %}
      let row_{{ r.at }} = slots[at + {{ r.at | times: 4 | plus: quad }}];
{% endfor %}
{% for i in (0..3) %}
{% assign c = quad | times: 4 | plus: i %}
      a_{{ c }}_0 += vec4f(row_0[{{ i }}], row_1[{{ i }}], row_2[{{ i }}], row_3[{{ i }}]);
      a_{{ c }}_1 += vec4f(row_4[{{ i }}], row_5[{{ i }}], row_6[{{ i }}], row_7[{{ i }}]);
{% endfor %}
    }
{% endfor %}
  }
{% if outside.size > 0 %}
  // Slots are undefined beyond the rank. Columns beyond it are right of the diagonal and never read.
  if (down == SIDE - 1) {
{% for c in columns %}
{% for r in outside %}
    a_{{ c.at }}_{{ r.name }} = 0.0;
{% endfor %}
{% endfor %}
  }
{% endif %}
