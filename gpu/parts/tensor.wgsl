#part tensor-declarations
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

#part tensor-gather
// Template: loops are unrolled, so that the loaded features stay in registers.
{%- comment -%}
Loads this thread's part of the rows of theta of one bin, whose ratings are in place `slot` of the ring, into
next_0 and following.
{%- endcomment -%}
{%- for pass in passes %}
{ let entry = ring[(slot) * BIN + gather_row + {{ pass }}u * GATHER_ROWS];
{%- if IMPLICIT %}
  rated_{{ pass }} = entry.y;
{%- endif %}
  if (chunk < FACTOR_CHUNKS) { next_{{ pass }} = fixed[entry.x * CHUNKS + chunk]; }
{%- unless RATING_ROW %}
  else if (chunk == FACTOR_CHUNKS) { next_{{ pass }} = vec4<u32>(entry.y, 0u, 0u, 0u); }
{%- endunless %} }
{%- endfor %}
{%- if CENTRE %}
if (thread < BIN) { next_bias = bias_of(ring[(slot) * BIN + thread].x); }
{%- endif %}

#part tensor-accumulate
// Template: each tile of A is a variable, and the host decides which subgroup sums it.
{%- comment -%}
Computes A, the sum of theta_v theta_v^T over the ratings [first, end) of a row, on tensor cores, from factors
in float16, in the accumulators sum_*. It takes BIN ratings at a time, a bin. The ratings themselves are a
further feature of theta, so the same products also give b.

While a bin is multiplied, the rows of theta of the next bin are loaded to next_*. Ratings are loaded earlier
still: before this code, `ring` must contain the ratings of the first two bins, and `coming` the ratings of
the third. With AHEAD the including shader has also loaded the rows of theta of the first bin.

With biases and an extra tile row for ratings (RATING_ROW), t_part becomes this thread's part of the sum t of
the ratings. next_* are declared here if A is moved back to the tensor cores (HALF_A), as in int8-accumulate.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<f32, 16, 16>(0.0);
{%- endfor %}
{%- if GRAM %}
    // Sums start at the Gram matrix, a term of A that is the same for all rows.
{%- for deal in deals %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for tile in deal.tiles %}
{%- if tile.row < TILES %}
      sum_{{ tile.accumulator }} = subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>, row_major>(
        &gram,
        {{ tile.row }}u * PADDED * 4u + {{ tile.column }}u * 4u,
        PADDED / 4u
      );
{%- endif %}
{%- endfor %}
    }
{%- endfor %}
{%- endif %}
{%- if BIASES %}
    var t_part = 0.0;
{%- endif %}
{%- unless AHEAD %}
{%- if HALF_A %}
{%- for pass in passes %}
    var next_{{ pass }} = vec4<u32>();
{%- endfor %}
{%- if CENTRE %}
    var next_bias = 0.0;
{%- endif %}
{%- endif %}
    {
      let slot = 0u;
      #import parts/tensor-gather
    }
{%- endunless %}
    var bin = 0u;
    for (var at = first; at < end; at += BIN) {
      if (chunk < CHUNKS) {
{%- for pass in passes %}
{%- if IMPLICIT %}
        staged[(gather_row + {{ pass }}u * GATHER_ROWS) * STRIDE + chunk] = {% if RATING_ROW %}weighted(next_{{ pass }}, rated_{{ pass }}){% else %}select(weighted(next_{{ pass }}, rated_{{ pass }}), vec4<u32>(rated_{{ pass }} & 0xffffu, 0u, 0u, 0u), chunk == FACTOR_CHUNKS){% endif %};
{%- else %}
        staged[(gather_row + {{ pass }}u * GATHER_ROWS) * STRIDE + chunk] = next_{{ pass }};
{%- endif %}
{%- endfor %}
      }
{%- if CENTRE %}
      if (thread < BIN) {
        let rated = centred(ring[(bin & 3u) * BIN + thread], next_bias);
        staged[thread * STRIDE + FACTOR_CHUNKS] = vec4<u32>(rated, 0u, 0u, 0u);
        t_part += unpack2x16float(rated).x;
      }
{%- elsif RATING_ROW %}
      if (thread < BIN) {
        let rated = ring[(bin & 3u) * BIN + thread].y;
        staged[thread * STRIDE + CHUNKS] = vec4<u32>(rated{% if IMPLICIT %} & 0xffffu{% endif %}, 0u, 0u, 0u);
      }
{%- endif %}
      if (thread < BIN) { ring[((bin + 2u) & 3u) * BIN + thread] = entry_of(coming); }
      if (at + BIN < end) {
        let slot = (bin + 1u) & 3u;
        #import parts/tensor-gather
        if (thread < BIN) { coming = rating_at(at + 3u * BIN + thread, end); }
      }
      workgroupBarrier();
      let held = min(BIN, end - at);
{%- for deal in deals %}
      {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
        {% if step > 0 %}if (held > {{ step }}u * 16u) {% endif %}{
{%- for tile in deal.lefts %}
          let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, col_major>(
            &staged,
            {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u,
            STRIDE
          );
{%- endfor %}
{%- for tile in deal.rights %}
          let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(
            &staged,
            {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u,
            STRIDE
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
      workgroupBarrier();
      bin++;
    }

#part tensor-line
// Template: the including shader passes the positions in memory.
{%- comment -%}
Reads this thread's elements of b and, with biases, of s from the sums that tensor cores stored in workgroup
memory: products of theta with the ratings, and with ones. They are in the tiles at {{ at }}, from line {{
line }} on.
{%- endcomment -%}
{%- if INT8 -%}
{ let digits = ({{ at }}u + own_tile) * 80u + {{ line | times: 5 }}u + own_line / 4u;
      b = fma(256.0, number_of(staged[digits])[own_line & 3u], number_of(staged[digits + 5u])[own_line & 3u]);
{%- if BIASES %}
      s = number_of(staged[digits + 10u])[own_line & 3u];
{%- endif %} }
{%- else -%}
b = bitcast<f32>(
  staged[({{ at }}u + own_tile) * 80u + {{ line | times: 5 }}u + own_line / 4u][own_line & 3u]
);
{%- if BIASES %}
    s = bitcast<f32>(
      staged[({{ at }}u + own_tile) * 80u + {{ line | times: 5 | plus: 5 }}u + own_line / 4u][own_line & 3u]
    );
{%- endif %}
{%- endif %}

#part tensor-exchange
// Template: loops are unrolled, so that a thread's elements of A stay in registers.
{%- comment -%}
Moves A from the accumulators of the tensor cores through workgroup memory to the threads' registers: a_m_q is
four columns of tile m of row q of this thread. Also b and, with biases, s = sum of theta_v and t_part (this
thread's part of t = sum of r_v). With INT8 the tiles are integers, and ratings have two 8-bit digits.
{%- endcomment %}
{%- for phase in phases %}
{%- unless forloop.first %}
    workgroupBarrier();
{%- endunless %}
    #import parts/tensor-store
{%- for line in phase.rows %}
{%- if line.row == TILES %}
    {% render 'parts/tensor-line', at: line.place, line: 0, BIASES: BIASES, INT8: INT8 %}
{%- else %}
{%- assign last = TILES | minus: 1 %}
{%- if line.row == last and RATING_ROW == false %}
    {% render 'parts/tensor-line', at: line.place, line: 8, BIASES: BIASES, INT8: INT8 %}
{%- if BIASES %}
    // The products of ratings and ones are t.
    t_part = {% if INT8 %}select(0.0, b, thread == PADDED - 6u){% else %}select(0.0, s, thread == PADDED - 8u){% endif %};
{%- endif %}
{%- endif %}
    if (tile_row == {{ line.row }}u) {
      let origin = {{ line.place }}u * 80u + quad_row * 20u + quad_lane;
{%- for m in (0..line.row) %}
{%- for q in (0..3) %}
      a_{{ m }}_{{ q }} = keep(number_of(staged[origin + {{ m }}u * 80u + {{ q }}u * 5u]), inverse);
{%- endfor %}
{%- endfor %}
    }
{%- if line.row > 0 %}
    else if (tile_row < {{ line.row }}u) {
      // The upper triangle is the lower one's transpose.
      let origin = ({{ line.place }}u + tile_row) * 80u + quad_lane * 20u + quad_row;
      let e0 = number_of(staged[origin]);
      let e1 = number_of(staged[origin + 5u]);
      let e2 = number_of(staged[origin + 10u]);
      let e3 = number_of(staged[origin + 15u]);
      a_{{ line.row }}_0 = keep(vec4f(e0.x, e1.x, e2.x, e3.x), inverse);
      a_{{ line.row }}_1 = keep(vec4f(e0.y, e1.y, e2.y, e3.y), inverse);
      a_{{ line.row }}_2 = keep(vec4f(e0.z, e1.z, e2.z, e3.z), inverse);
      a_{{ line.row }}_3 = keep(vec4f(e0.w, e1.w, e2.w, e3.w), inverse);
    }
{%- endif %}
{%- endif %}
{%- endfor %}
{%- endfor %}

#part tensor-directives
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

#part tensor-store
// Template: a plan in TypeScript says which subgroup has which tiles.
{%- comment %} Stores the tiles of a phase from the accumulators to workgroup memory. {% endcomment %}
{%- for store in phase.stores %}
{% unless forloop.first %}else {% endunless %}if (subgroup == {{ store.subgroup }}u) {
{%- for tile in store.tiles %}
  subgroupMatrixStore<row_major>(&staged, {{ tile.place }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- endfor %}
}
{%- endfor %}
workgroupBarrier();
