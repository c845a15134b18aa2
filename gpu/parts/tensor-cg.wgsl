#part tensor-cg-declarations
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

#part tensor-halves
// Template: each operand of the tensor cores is a variable of its own.
{%- comment -%}
Converts A, as summed on tensor cores, to A / n in float16, as the left operand of later products on tensor
cores; with biases, A / n - s s^T / (n weight). a_k_j is the operand for tile column j of the subgroup's k-th
tile row, which is tile row `subgroup` + k SUBGROUPS of A.

The summed tiles also contain b_e and, with biases, s_e and t: the elements e * 32 + lane of b and s, of which
all subgroups have a copy. With INT8 the tiles are integers, and ratings have two 8-bit digits.
{%- endcomment %}
{%- assign last = TILES | minus: 1 %}
{%- if RATING_ROW %}{% assign b_line = 0 %}{% else %}{% assign b_line = 8 %}{% endif %}
{%- for k in own_rows %}
{%- for j in tile_numbers %}
    var a_{{ k }}_{{ j }} = subgroup_matrix_left<f16, 16, 16>();
{%- endfor %}
{%- endfor %}
{%- if BIASES and RATING_ROW %}
    let t_subgroup = subgroupAdd(t_part);
    if (lane == 0u) { sums[subgroup] = t_subgroup; }
{%- endif %}
{%- for phase in half_phases %}
{%- unless forloop.first %}
{%- unless was_converted %}
    workgroupBarrier();
{%- endunless %}
{%- endunless %}
{%- assign was_converted = phase.converted %}
    #import parts/tensor-store
{%- for part in phase.rated %}
    {% unless part.both %}if (lane / 16u == {{ part.side }}u) {% endunless %}{
      let source = ({{ part.place }}u{% if part.both %} + lane / 16u{% endif %}) * 80u
        + {{ b_line | times: 5 }}u + (lane & 15u) / 4u;
{%- if INT8 %}
      b_{{ part.element }} = fma(
        256.0,
        one_number_of(source, lane & 3u),
        one_number_of(source + 5u, lane & 3u)
      );
{%- if BIASES %}
      s_{{ part.element }} = one_number_of(source + 10u, lane & 3u) * inverse;
{%- endif %}
{%- else %}
      b_{{ part.element }} = one_number_of(source, lane & 3u);
{%- if BIASES %}
      s_{{ part.element }} = one_number_of(source + 5u, lane & 3u) * inverse;
{%- endif %}
{%- endif %}
    }
{%- endfor %}
{%- if BIASES and phase.last_rated >= 0 %}
{%- if RATING_ROW %}
    t = sums[0];
{%- for other in other_subgroups %}
    t += sums[{{ other }}];
{%- endfor %}
{%- else %}
    // The products of ratings and ones are t.
{%- if INT8 %}
    t = fma(
      256.0,
      one_number_of({{ phase.last_rated }}u * 80u + 42u, 2u),
      one_number_of({{ phase.last_rated }}u * 80u + 47u, 2u)
    );
{%- else %}
    t = one_number_of({{ phase.last_rated }}u * 80u + 47u, 0u);
{%- endif %}
{%- endif %}
{%- for e in elements %}
    if (subgroup == {{ e }}u && thread < PADDED) { ones[thread / 4u][thread & 3u] = s_{{ e }}; }
{%- endfor %}
{%- endif %}
{%- if phase.converted %}
    for (var place = subgroup; place < {{ phase.count }}u; place += SUBGROUPS) {
      let own_line = lane / 2u;
      let side = lane & 1u;
      let source = place * 80u + own_line * 5u + side * 2u;
      var low = number_of(staged[source]) * inverse;
      var high = number_of(staged[source + 1u]) * inverse;
{%- assign end_row = phase.lines | map: "row" | last %}
{%- assign masked = false %}
{%- if RATING_ROW == false and end_row == last %}{% assign masked = true %}{% endif %}
{%- if BIASES or masked %}
{%- for line in phase.lines %}
{%- if forloop.first %}
      var tile_row = {{ line.row }}u;
      var column = place + {{ line.column }}u;
{%- else %}
      if (place >= {{ line.place }}u) { tile_row = {{ line.row }}u; column = place - {{ line.place }}u; }
{%- endif %}
{%- endfor %}
{%- endif %}
{%- if BIASES %}
      let part = ones[tile_row * 4u + own_line / 4u][own_line & 3u] / weight;
      low -= part * ones[column * 4u + side * 2u];
      high -= part * ones[column * 4u + side * 2u + 1u];
{%- endif %}
{%- if masked %}
      // Elements beyond the rank, where the ratings are, are set to 0.
      let held = select(0u, RANK, tile_row * 16u + own_line < RANK);
      let first_column = vec4<u32>(column * 16u + side * 8u) + vec4<u32>(0u, 1u, 2u, 3u);
      low = select(vec4f(), low, first_column < vec4<u32>(held));
      high = select(vec4f(), high, first_column + vec4<u32>(4u) < vec4<u32>(held));
{%- endif %}
      staged[HALVES + place * 32u + lane] = packed(low, high);
    }
    workgroupBarrier();
{%- for load in phase.loads %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ load.subgroup }}u) {
{%- for tile in load.tiles %}
      a_{{ tile.name }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, {% if tile.transposed %}col_major{% else %}row_major{% endif %}>(&staged, HALVES + {{ tile.place }}u * 32u, 2u);
{%- endfor %}
    }
{%- endfor %}
{%- endif %}
{%- endfor %}

#part tensor-product
// Template: each operand of the tensor cores is a variable of its own.
{%- comment -%}
Computes product_e = (A v)[e * 32 + lane] on tensor cores, for the vector v that put_vector wrote to workgroup
memory. Elements after the last tile are undefined.
{%- endcomment %}
      workgroupBarrier();
      {
{%- for k in own_rows %}
        var y_{{ k }} = subgroup_matrix_result<f32, 8, 16>(0.0);
{%- endfor %}
{%- for j in tile_numbers %}
        let v_{{ j }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &staged,
          {{ j }}u * 2u,
          VECTOR_PITCH
        );
{%- for k in own_rows %}
        y_{{ k }} = subgroupMatrixMultiplyAccumulate(a_{{ k }}_{{ j }}, v_{{ j }}, y_{{ k }});
{%- endfor %}
{%- endfor %}
{%- for k in own_rows %}
        if (subgroup + {{ k }}u * SUBGROUPS < TILES) {
          subgroupMatrixStore<col_major>(
            &staged,
            PRODUCTS + (subgroup + {{ k }}u * SUBGROUPS) * 40u,
            y_{{ k }},
            5u
          );
        }
{%- endfor %}
      }
      workgroupBarrier();
{%- for e in elements %}
      { let source = PRODUCTS + ({{ e }}u * 2u + lane / 16u) * 40u + (lane & 15u) / 4u;
        product_{{ e }} = bitcast<f32>(staged[source][lane & 3u])
          + bitcast<f32>(staged[source + 5u][lane & 3u]); }
{%- endfor %}

#part tensor-cg
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Solves a row by conjugate gradients with A / n in float16 on tensor cores (cuMF_ALS, Algorithm 1 and section
4.2). The formulas are the same as in parts/register-cg. Every subgroup has copies of all vectors: a lane has
the elements e * 32 + lane, so that sums need no barrier. A vector is scaled to the range of float16 before it
is multiplied.

With INT8 the real matrix is S A S for a diagonal matrix S, and own_scale_e is this thread's element of S.

The product with the initial x is computed by the first turn of the loop: the driver compiles one copy of the
product's code faster than two.
{%- endcomment %}
{%- if INT8 %}{% assign x_factor = '16.0' %}{% assign x_inverse = '0.0625' %}{% assign p_factor = '2048.0' %}{% else %}{% assign x_factor = '1.0' %}{% assign x_inverse = '1.0' %}{% assign p_factor = '1024.0' %}{% endif %}
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
    let is_{{ e }} = {{ e }}u * 32u + lane < RANK;
    b_{{ e }} = select(0.0, b_{{ e }}{{ scaled }} * params.unscale * inverse, is_{{ e }});
{%- if BIASES %}
    s_{{ e }} = select(0.0, s_{{ e }}{{ scaled }}, is_{{ e }});
{%- endif %}
    var x_{{ e }} = select(0.0, start_{{ e }}, is_{{ e }});
    var p_{{ e }} = x_{{ e }};
    var product_{{ e }} = 0.0;
{%- endfor %}
{%- if BIASES %}
    t *= params.unscale * inverse;
{%- endif %}
{%- for e in elements %}
    // b until the first product, then the residual.
    var r_{{ e }} = {% if BIASES %}fma(-t / weight, s_{{ e }}, b_{{ e }}){% else %}b_{{ e }}{% endif %};
{%- endfor %}
    var factor = {{ x_factor }};
    var objective = 0.0;
    var enough = 0.0;
    {{ loads }}
    for (var turn = 0u; turn <= params.steps; turn++) {
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
      {% if forloop.first %}var put = p_0{{ scaled }};{% else %}if (subgroup == {{ e }}u) { put = p_{{ e }}{{ scaled }}; }{% endif %}
{%- endfor %}
      put_vector(thread, put * factor);
      #import parts/tensor-product
      if (turn == 0u) {
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
        let first_{{ e }} = r_{{ e }};
        r_{{ e }} = select(
          0.0,
          r_{{ e }} - fma(shift, x_{{ e }}, product_{{ e }}{{ scaled }} * {{ x_inverse }}),
          is_{{ e }}
        );
        p_{{ e }} = r_{{ e }};
{%- endfor %}
        let begin = subgroupAdd(
          {% for e in elements %}{% unless forloop.first %} + {% endunless %}r_{{ e }} * r_{{ e }}{% endfor %}
        );
        // The objective x^T A x - 2 b^T x, including the bias. Each step lowers it by alpha |r|^2.
        objective = {% if BIASES %}-(t / weight) * t {% endif %}-subgroupAdd(
          {% for e in elements %}{% unless forloop.first %} + {% endunless -%}
          x_{{ e }} * (first_{{ e }} + r_{{ e }}){% endfor %}
        );
        // Below this value of |r|^2, a fraction of the first one, the residual is only rounding error and
        // further steps would have random directions.
        enough = max(begin * RESIDUAL_TOLERANCE, 1e-30);
        factor = {{ p_factor }} * inverseSqrt(max(begin, 1e-30));
        {{ between }}
      } else {
        let unfactor = 1.0 / factor;
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
        let ap_{{ e }} = select(
          0.0,
          fma(shift, p_{{ e }}, product_{{ e }}{{ scaled }} * unfactor),
          is_{{ e }}
        );
{%- endfor %}
        let part = one_of_three(
          thread,
          {% for e in elements %}{% unless forloop.first %} + {% endunless -%}
          vec3f(r_{{ e }} * r_{{ e }}, p_{{ e }} * ap_{{ e }}, ap_{{ e }} * ap_{{ e }}){% endfor %}
        );
        let total = vec3f(subgroupShuffle(part, 0u), subgroupShuffle(part, 2u), subgroupShuffle(part, 1u));
        let alpha = select(0.0, total.x / total.y, total.x > enough && goes_on(total.y));
        let left = max(alpha * alpha * total.z - total.x, 0.0);
        let beta = select(0.0, left / total.x, total.x > enough);
        // If the computed residual almost vanishes, the real one is larger, because of rounding errors. So
        // |r|^2 is taken as at least 1/1000 of its value before the step.
        factor = {{ p_factor }} * inverseSqrt(max(max(left, total.x * 1e-3), 1e-30));
        objective = fma(-alpha, total.x, objective);
{%- for e in elements %}
        x_{{ e }} = fma(alpha, p_{{ e }}, x_{{ e }});
        r_{{ e }} = fma(-alpha, ap_{{ e }}, r_{{ e }});
        p_{{ e }} = fma(beta, p_{{ e }}, r_{{ e }});
{%- endfor %}
      }
    }
{%- if BIASES %}
    let s_x = subgroupAdd(
      {% for e in elements %}{% unless forloop.first %} + {% endunless %}s_{{ e }} * x_{{ e }}{% endfor %}
    );
    let beta_row = (t - s_x) / weight;
{%- endif %}
