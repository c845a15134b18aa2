// Template: with biases, some functions have one parameter more.
const BYTES = vec4<u32>(0x00ff00ffu);
const WORDS = vec4<u32>(0x0000ffffu);
const EIGHT = vec4<u32>(8u);
const SIXTEEN = vec4<u32>(16u);

// Workgroup memory from which tensor cores load rows of theta in 8 bits. It has one line for each feature,
// with the numbers of BIN ratings (a bin); lines are ROW_VECTORS apart. Rows of theta are transposed when
// they are stored here.
//
// The memory also contains two rings of three bins each: the ratings' columns, and their values as two 8-bit
// digits (with biases followed by a 1). An element of a ring has four ratings. While one bin is multiplied,
// rows of theta of the next are loaded and the third is filled. After the ratings of a row, the tiles of A
// pass through all of this memory.
var<workgroup> staged: array<vec4<u32>, STAGED>;

// Index in `staged` of four ratings of a bin: of their columns, or of their values.
fn columns_at(bin: u32, four: u32) -> u32 {
  return COLUMNS + (bin % 3u) * COLUMNS_BIN + four * COLUMNS_FOUR;
}
fn rated_at(bin: u32, four: u32) -> u32 {
  return RATED + (bin % 3u) * RATED_BIN + four * RATED_FOUR;
}

// Column and value of rating number `at`. From `end` on: the row of zeros that follows the last row of theta.
fn rating_at(at: u32, end: u32) -> vec2<u32> {
  var result = vec2<u32>(params.zero_row, 0u);
  if (at < end) {
    result = vec2<u32>(indices[at], bitcast<u32>(values[at]));
  }
  return result;
}

{%- if BIASES %}
// The bias of a column. For the row of zeros, which has none, it is another column's bias, which is not used.
fn bias_of(column: u32) -> f32 {
  return fixed_bias[min(column, params.zero_row - 1u)];
}

{% endif -%}
fn put_column(bin: u32, place: u32, column: u32) {
  staged[columns_at(bin, place / 4u)][place & 3u] = column;
}

// Rounds a rating{% if BIASES %} less mean and bias{% endif %}, and writes its two 8-bit digits to the ring.
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

// Packs one byte of each of four words into one word.
fn bytes_of(words: vec4<u32>, shift: u32) -> u32 {
  let bytes = (words >> vec4<u32>(shift)) & vec4<u32>(0xffu);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}
{%- endif %}
{%- if RATING_ROW and BIASES %}

// The sum of four ratings, computed from their two digits.
fn sum_of(words: vec4<u32>) -> f32 {
  let high = bitcast<vec4<i32>>(words << vec4<u32>(24u)) >> vec4<u32>(24u);
  let low = bitcast<vec4<i32>>(words << vec4<u32>(16u)) >> vec4<u32>(24u);
  return dot(vec4f(high * 256 + low), vec4f(1.0));
}
{%- endif %}

// Four numbers of a tile of A in workgroup memory, which are 32-bit integers here.
fn number_of(content: vec4<u32>) -> vec4f {
  return vec4f(bitcast<vec4<i32>>(content));
}

// One number of the four that are staged at `at`.
fn one_number_of(at: u32, number: u32) -> f32 {
  return f32(bitcast<i32>(staged[at][number]));
}
