#part int8-declarations
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

#part int8-gather
// Template: the including shader names the variables to fill.
{%- comment -%}
Loads rows of theta of the ratings of bin `ahead`, 16 features of four ratings per thread, into next_S_0 to
next_S_3 for S = `set`.
{%- endcomment -%}
{ let four = staged[columns_at(ahead, group)];
  if (chunk < TILES) {
{%- for r in (0..3) %}
    next_{{ set }}_{{ r }} = fixed[four[{{ r }}] * ROW_PIECES + chunk];
{%- endfor %}
  } }

#part int8-accumulate
// Template: each tile of A is a variable, and the host decides which subgroup sums it.
{%- comment -%}
Computes A, the sum of theta_v theta_v^T over the ratings [first, end) of a row, on tensor cores, from factors
in 8 bits, in the accumulators sum_*. It takes BIN ratings at a time, a bin. The ratings themselves are
further features of theta, so the same products also give b.

While a bin is multiplied, the rows of theta of the next bin are loaded to next_0_*. With two `sets`, rows are
loaded two bins in advance, alternately to next_0_* and next_1_*. Ratings are loaded earlier still: before
this code, the rings in workgroup memory must contain the ratings of the first two bins, and `coming` the
ratings of the third.

With biases and an extra tile row for ratings (RATING_ROW), t_part becomes this thread's part of the sum t of
the ratings.

next_* are declared here if A is moved back to the tensor cores (HALF_A): their registers are then free for
another workgroup. In other variants that is slower, and the including shader declares them.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<i32, 16, 16>(0);
{%- endfor %}
{%- if BIASES %}
    var t_part = 0.0;
{%- endif %}
{%- if HALF_A %}
{%- for set in sets %}
{%- for r in (0..3) %}
    var next_{{ set }}_{{ r }} = vec4<u32>();
{%- endfor %}
{%- endfor %}
{%- endif %}
    {
      let ahead = 0u;
      {% render 'parts/int8-gather', set: 0 %}
    }
{%- if sets.size == 2 %}
    if (first + BIN < end) {
      let ahead = 1u;
      {% render 'parts/int8-gather', set: 1 %}
    }
{%- endif %}
    var bin = 0u;
    for (var turn = first; turn < end; turn += {{ sets.size }}u * BIN) {
{%- for set in sets %}
    {% if set == 1 %}if (turn + BIN < end) {% endif %}{
      let at = turn{% if set == 1 %} + BIN{% endif %};
      if (chunk < TILES) {
{%- unless RATING_ROW %}
        // The ratings are stored in padding of theta, as features 8 to 10 of the last tile.
        if (chunk == TILES - 1u) {
          let ratings = staged[rated_at(bin, group)];
{%- for r in (0..3) %}
          next_{{ set }}_{{ r }}.z = ratings[{{ r }}];
{%- endfor %}
        }
{%- endunless %}
        // Transposes blocks of four ratings by four features, one byte each.
        let even_low = (next_{{ set }}_0 & BYTES) | ((next_{{ set }}_1 & BYTES) << EIGHT);
        let odd_low = ((next_{{ set }}_0 >> EIGHT) & BYTES) | (next_{{ set }}_1 & ~BYTES);
        let even_high = (next_{{ set }}_2 & BYTES) | ((next_{{ set }}_3 & BYTES) << EIGHT);
        let odd_high = ((next_{{ set }}_2 >> EIGHT) & BYTES) | (next_{{ set }}_3 & ~BYTES);
        let line_0 = (even_low & WORDS) | (even_high << SIXTEEN);
        let line_1 = (odd_low & WORDS) | (odd_high << SIXTEEN);
        let line_2 = (even_low >> SIXTEEN) | (even_high & ~WORDS);
        let line_3 = (odd_low >> SIXTEEN) | (odd_high & ~WORDS);
        let place = FRONT + chunk * TILE_VECTORS + group / 4u;
{%- for quad in (0..3) %}
{%- for line in (0..3) %}
        staged[place + {{ quad | times: 4 | plus: line }}u * ROW_VECTORS][group & 3u] = line_{{ line }}[{{ quad }}];
{%- endfor %}
{%- endfor %}
      }
{%- if RATING_ROW %}
      // The ratings have an extra tile row. Only its first lines are stored, in the memory before the first
      // tile. Its other lines overlap that tile, and their products are ignored.
      if (thread < BIN / 4u) {
        let ratings = staged[rated_at(bin, thread)];
        let place = thread / 4u;
        staged[place][thread & 3u] = bytes_of(ratings, 0u);
        staged[place + ROW_VECTORS][thread & 3u] = bytes_of(ratings, 8u);
{%- if BIASES %}
        staged[place + 2u * ROW_VECTORS][thread & 3u] = bytes_of(ratings, 16u);
        t_part += sum_of(ratings);
{%- endif %}
      }
{%- endif %}
{%- if BIASES %}
      // The bias of the new rating's column is loaded while the bin is multiplied.
      let arrived = coming;
      var arrived_bias = 0.0;
      if (thread < BIN) {
        put_column(bin + 2u, thread, arrived.x);
        arrived_bias = bias_of(arrived.x);
      }
{%- else %}
      if (thread < BIN) { put_rating(bin + 2u, thread, coming); }
{%- endif %}
      if (at + BIN < end) {
{%- if sets.size == 1 %}
        let ahead = bin + 1u;
        {% render 'parts/int8-gather', set: 0 %}
{%- endif %}
        if (thread < BIN) { coming = rating_at(at + 3u * BIN + thread, end); }
      }
      workgroupBarrier();
{%- if sets.size == 2 %}
      if (at + 2u * BIN < end) {
        let ahead = bin + 2u;
        {% render 'parts/int8-gather', set: set %}
      }
{%- endif %}
      let held = min(BIN, end - at);
{%- for deal in deals %}
      {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
        {% if step > 0 %}if (held > {{ step }}u * 32u) {% endif %}{
{%- for tile in deal.lefts %}
          let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>, row_major>(
            &staged,
            {% if tile < TILES %}FRONT + {{ tile }}u * TILE_VECTORS + {% endif %}{{ step }}u * 2u,
            ROW_VECTORS
          );
{%- endfor %}
{%- for tile in deal.rights %}
          let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<i8, 16, 32>, col_major>(
            &staged,
            FRONT + {{ tile }}u * TILE_VECTORS + {{ step }}u * 2u,
            ROW_VECTORS
          );
{%- endfor %}
{%- for tile in deal.tiles %}
          sum_{{ tile.accumulator }} = subgroupMatrixMultiplyAccumulate(
            left_{{ tile.row }},
            right_{{ tile.column }},
            sum_{{ tile.accumulator }}
          );
{%- endfor %}
        }
{%- endfor %}
      }
{%- endfor %}
{%- if BIASES %}
      if (thread < BIN) { put_digits(bin + 2u, thread, arrived, arrived_bias); }
{%- endif %}
      workgroupBarrier();
      bin++;
    }
{%- endfor %}
    }

#part rounded-quad
// Four features in float16, divided by their columns' largest |x| and rounded to 8 bits. The minimum avoids a
// division by 0 in columns of zeros.
fn rounded_quad(words: vec2u, largest: vec4f) -> u32 {
  return pack4x8snorm(vec4f(unpack2x16float(words.x), unpack2x16float(words.y)) / max(largest, vec4f(1e-30)));
}
