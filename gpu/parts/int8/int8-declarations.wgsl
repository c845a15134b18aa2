// Template: with and without biases entries have different types.
const BYTES = vec4<u32>(0x00ff00ffu);
const WORDS = vec4<u32>(0x0000ffffu);
const EIGHT = vec4<u32>(8u);
const SIXTEEN = vec4<u32>(16u);

// Memory in which rows of theta are staged, in the layout that tensor cores need for 8 bits: one line for
// each feature, with the numbers of BIN ratings; lines are ROW_VECTORS apart. Rows of four ratings are
// transposed when they are stored.
//
// Rings of three bins are stored between or after the lines. An element has four ratings: their columns, or
// their values as two 8-bit digits, followed by a 1 with biases. While one bin is multiplied, rows of the
// next are loaded and the third is filled. After the ratings of a row, the tiles of A are moved through the
// whole memory.
var<workgroup> staged: array<vec4<u32>, STAGED>;

// Indices in the rings of four ratings of a bin.
fn columns_at(bin: u32, four: u32) -> u32 {
  return COLUMNS + (bin % 3u) * COLUMNS_BIN + four * COLUMNS_FOUR;
}
fn rated_at(bin: u32, four: u32) -> u32 {
  return RATED + (bin % 3u) * RATED_BIN + four * RATED_FOUR;
}

// Column and value of rating number `at`, or the row of zeros after the end.
fn rating_at(at: u32, end: u32) -> vec2<u32> {
  var result = vec2<u32>(params.zero_row, 0u);
  if (at < end) {
    result = vec2<u32>(indices[at], bitcast<u32>(values[at]));
  }
  return result;
}

{%- if BIASES %}
// The bias of a column. The row of zeros has no bias; it gets the last column's, which is not used.
fn bias_of(column: u32) -> f32 {
  return fixed_bias[min(column, params.zero_row - 1u)];
}

{% endif -%}
fn put_column(bin: u32, place: u32, column: u32) {
  staged[columns_at(bin, place / 4u)][place & 3u] = column;
}

// Writes the digits of a rating{% if BIASES %} less mean and bias{% endif %} to an index of the ring's bin.
fn put_digits(bin: u32, place: u32, rating: vec2<u32>{% if BIASES %}, column_bias: f32{% endif %}) {
  let number = i32(
    clamp(
      round(
        {% if BIASES %}(bitcast<f32>(rating.y) - (params.mean + column_bias))
        {%- else %}bitcast<f32>(rating.y){% endif %} * params.scale
      ),
      -32000.0,
      32000.0
    )
  );
  let high = (number + 128) >> 8u;
  let digits = (u32(high) & 0xffu) | ((u32(number - high * 256) & 0xffu) << 8u){% if BIASES %} | 0x10000u{% endif %};
  staged[rated_at(bin, place / 4u)][place & 3u] = {% if BIASES %}select(digits, 0u, rating.x == params.zero_row){% else %}digits{% endif %};
}

fn put_rating(bin: u32, place: u32, rating: vec2<u32>{% if BIASES %}, column_bias: f32{% endif %}) {
  put_column(bin, place, rating.x);
  put_digits(bin, place, rating{% if BIASES %}, column_bias{% endif %});
}

{%- if RATING_ROW %}

// Collects the same byte of four words in one word.
fn bytes_of(words: vec4<u32>, shift: u32) -> u32 {
  let bytes = (words >> vec4<u32>(shift)) & vec4<u32>(0xffu);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}
{%- endif %}
{%- if RATING_ROW and BIASES %}

// The sum of four ratings from their digits.
fn sum_of(words: vec4<u32>) -> f32 {
  let high = bitcast<vec4<i32>>(words << vec4<u32>(24u)) >> vec4<u32>(24u);
  let low = bitcast<vec4<i32>>(words << vec4<u32>(16u)) >> vec4<u32>(24u);
  return dot(vec4f(high * 256 + low), vec4f(1.0));
}
{%- endif %}

// Four numbers of a tile in workgroup memory.
fn number_of(content: vec4<u32>) -> vec4f {
  return vec4f(bitcast<vec4<i32>>(content));
}

// One number of the four that are staged at `at`.
fn one_number_of(at: u32, number: u32) -> f32 {
  return f32(bitcast<i32>(staged[at][number]));
}
