// Template: the tolerance is a number that is no integer, and biases have memory of their own.
const RESIDUAL_TOLERANCE = {{ tolerance }};

// `staged` also holds, behind tiles of A on their way from the tensor cores, the same tiles of A / n in
// float16 on their way back, 16 lines of 16 numbers each; and later the vector that A is multiplied with,
// rounded to float16 in the first column, what that leaves out in the second (other columns of products mean
// nothing), and behind it the products, tile row by tile row: columns of 16 numbers, 20 apart, which spreads
// the banks.
const HALVES = ROOM * 80;
const PRODUCTS = 8 * VECTOR_PITCH;
{%- if BIASES %}
// s / n, and the subgroups' parts of t.
var<workgroup> ones: array<vec4f, TILES * 4>;
var<workgroup> sums: array<f32, SUBGROUPS>;
{%- endif %}

// Two neighbours put their numbers together: one what is rounded, the other what is left.
fn put_vector(thread: u32, value: f32) {
  let high = f32(f16(value));
  let low = value - high;
  let odd = (thread & 1u) == 1u;
  let other = subgroupShuffleXor(select(low, high, odd), 1u);
  if (thread < PADDED) {
    staged[select(0u, VECTOR_PITCH, odd) + thread / 8u][(thread / 2u) & 3u] = pack2x16float(select(vec2f(high, other), vec2f(other, low), odd));
  }
}

#import parts/one-of-three

fn packed(low: vec4f, high: vec4f) -> vec4<u32> {
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
}
