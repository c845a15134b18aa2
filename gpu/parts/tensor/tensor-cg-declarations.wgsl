// Template: inserts the tolerance, and memory that only variants with biases need.
const RESIDUAL_TOLERANCE = {{ tolerance }};

// Layout of the workgroup memory `staged` during conjugate gradients. First it contains tiles of A as tensor
// cores write them and, from HALVES on, the same tiles of A / n in float16 as tensor cores read them (16
// lines of 16 numbers each).
//
// Later it contains the vector that A is multiplied by, as two columns of a matrix: the vector rounded to
// float16, and the rounding error. (Products with the matrix's other columns are not used.) The products are
// stored from PRODUCTS on, tile row by tile row: columns of 16 numbers, 20 apart to avoid bank conflicts.
const HALVES = ROOM * 80;
const PRODUCTS = 8 * VECTOR_PITCH;
{%- if BIASES %}
// s / n, and the subgroups' partial sums of t.
var<workgroup> ones: array<vec4f, TILES * 4>;
var<workgroup> sums: array<f32, SUBGROUPS>;
{%- endif %}

// Writes this thread's element of the vector. Of two neighbouring lanes, one writes both rounded numbers and
// the other both rounding errors, since two float16 numbers share a word.
fn put_vector(thread: u32, value: f32) {
  let high = f32(f16(value));
  let low = value - high;
  let odd = (thread & 1u) == 1u;
  let other = subgroupShuffleXor(select(low, high, odd), 1u);
  if (thread < PADDED) {
    staged[select(0u, VECTOR_PITCH, odd) + thread / 8u][(thread / 2u) & 3u] = pack2x16float(
      select(vec2f(high, other), vec2f(other, low), odd)
    );
  }
}

#import parts/one-of-three

fn packed(low: vec4f, high: vec4f) -> vec4<u32> {
  return vec4<u32>(
    pack2x16float(low.xy),
    pack2x16float(low.zw),
    pack2x16float(high.xy),
    pack2x16float(high.zw)
  );
}
