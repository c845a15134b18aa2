// Template: A is stored in float16 or float32, and its variables have different types.
const RESIDUAL_TOLERANCE = {{ tolerance }};

// Workgroup memory of conjugate gradients: the vector that A is multiplied by (double-buffered), and partial
// sums of the subgroups.
{%- if INT8 %} They are stored where ratings and tiles of A were staged before.
fn vector_part(which: u32, part: u32) -> vec4f {
  return bitcast<vec4f>(staged[which * TILES * 4u + part]);
}
fn sum_at(at: u32) -> vec4f {
  return bitcast<vec4f>(staged[TILES * 8u + at]);
}
fn put_sum(at: u32, number: u32, value: f32) {
  staged[TILES * 8u + at][number] = bitcast<u32>(value);
}
fn put_vector(which: u32, row: u32, value: f32) {
  if (row < TILES * 16u) {
    staged[which * TILES * 4u + row / 4u][row & 3u] = bitcast<u32>(value);
  }
}
{%- else %}
var<workgroup> vectors: array<vec4f, 2 * TILES * 4>;
var<workgroup> sums: array<vec4f, 2 * SUBGROUPS>;

fn vector_part(which: u32, part: u32) -> vec4f {
  return vectors[which * TILES * 4u + part];
}
fn sum_at(at: u32) -> vec4f {
  return sums[at];
}
fn put_sum(at: u32, number: u32, value: f32) {
  sums[at][number] = value;
}
fn put_vector(which: u32, row: u32, value: f32) {
  if (row < TILES * 16u) {
    vectors[which * TILES * 4u + row / 4u][row & 3u] = value;
  }
}
{%- endif %}

{% if HALF_A -%}
// Stores A / n in float16, two numbers in a register.
fn keep(value: vec4f, inverse: f32) -> vec2<u32> {
  let scaled = value * inverse;
  return vec2<u32>(pack2x16float(scaled.xy), pack2x16float(scaled.zw));
}
fn use_a(kept: vec2<u32>) -> vec4f {
  return vec4f(unpack2x16float(kept.x), unpack2x16float(kept.y));
}
fn less(kept: vec2<u32>, value: vec4f) -> vec2<u32> {
  return keep(use_a(kept) - value, 1.0);
}
{%- else -%}
fn keep(value: vec4f, inverse: f32) -> vec4f {
  return value;
}
fn use_a(kept: vec4f) -> vec4f {
  return kept;
}
fn less(kept: vec4f, value: vec4f) -> vec4f {
  return kept - value;
}
{%- endif %}

#import parts/one-of-three
