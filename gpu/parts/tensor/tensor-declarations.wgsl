// Template: code of implicit data and of biases uses uniforms and buffers that other variants do not have.
// Workgroup memory from which tensor cores load rows of theta: BIN rows of CHUNKS x 16 bytes and one chunk
// more, an odd distance that avoids bank conflicts. Later the tiles of A pass through the same memory to the
// threads' registers.
var<workgroup> staged: array<vec4<u32>, STAGED>;
// A ring of four bins of BIN ratings, as (column, rating): two bins are in use, one is ready, one is being
// loaded. Ratings are scaled float16 numbers, or with CENTRE unscaled float32.
var<workgroup> ring: array<vec2<u32>, 4 * BIN>;

// Column and value of rating number `at`. From `end` on: the row of zeros that follows the last row of theta.
fn rating_at(at: u32, end: u32) -> vec2<u32> {
  var result = vec2<u32>(params.zero_row, 0u);
  if (at < end) {
    result = vec2<u32>(indices[at], bitcast<u32>(values[at]));
  }
  return result;
}

// Converts a rating, as it was loaded, to its entry in the ring. This is called when the ring is filled, one
// bin after the load: a call directly after the load would wait for it.
fn entry_of(rating: vec2<u32>) -> vec2<u32> {
{%- if CENTRE %}
  return rating;
{%- else %}
  let value = bitcast<f32>(rating.y);
{%- if IMPLICIT %}
  // With the weights w of implicit data: the target t / sqrt(w) in the lower half, and in the upper half the
  // rounded sqrt(w), by which the row of theta is multiplied.
  let root = f32(f16(sqrt(params.alpha * abs(value))));
  let target_ = select(0.0, fma(params.alpha, value, params.base) / root, value > 0.0);
  return vec2<u32>(rating.x, pack2x16float(vec2f(target_ * params.scale, root)));
{%- elsif BIASES %}
  // The rating is followed by a 1, so that the same products also sum the rows of theta.
  return vec2<u32>(
    rating.x,
    select(pack2x16float(vec2f(value * params.scale, 1.0)), 0u, rating.x == params.zero_row)
  );
{%- else %}
  return vec2<u32>(rating.x, pack2x16float(vec2f(value * params.scale, 0.0)));
{%- endif %}
{%- endif %}
}
{%- if CENTRE %}

// The bias of a column. For the row of zeros after the last column, which has no bias, the index is clamped,
// and the result is not used.
fn bias_of(column: u32) -> f32 {
  return fixed_bias[min(column, params.zero_row - 1u)];
}

// The rating of a ring entry, less mean and bias, as scaled float16. It is followed by a 1, so that the same
// products also sum the rows of theta.
fn centred(entry: vec2<u32>, column_bias: f32) -> u32 {
  let rated = bitcast<f32>(entry.y) - (params.mean + column_bias);
  return select(pack2x16float(vec2f(rated * params.scale, 1.0)), 0u, entry.x == params.zero_row);
}
{%- endif %}
{%- if IMPLICIT %}

// Eight features of a row of theta, multiplied by the root of the rating's weight, which is stored after the
// rating.
fn weighted(content: vec4<u32>, rated: u32) -> vec4<u32> {
  let root = bitcast<vec2<f16>>(rated).yy;
  return vec4<u32>(
    bitcast<u32>(bitcast<vec2<f16>>(content.x) * root),
    bitcast<u32>(bitcast<vec2<f16>>(content.y) * root),
    bitcast<u32>(bitcast<vec2<f16>>(content.z) * root),
    bitcast<u32>(bitcast<vec2<f16>>(content.w) * root)
  );
}
{%- endif %}

// Four numbers of a tile of A in workgroup memory, which are float32 here.
fn number_of(content: vec4<u32>) -> vec4f {
  return bitcast<vec4f>(content);
}

// One number of the four that are staged at `at`.
fn one_number_of(at: u32, number: u32) -> f32 {
  return bitcast<f32>(staged[at][number]);
}
