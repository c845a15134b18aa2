#part register-helpers
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

#part register-product
// Template: loops are unrolled, so that a thread's elements of A stay in registers.
{%- comment -%}
Computes product = (A v)[row] for this thread's row, where v is in buffer `{{ from }}` of put_vector. Four
adjacent lanes hold four rows of A: each lane has a quarter of the columns of all four, and the lanes exchange
their sums.
{%- endcomment %}
      {
{%- for q in (0..3) %}
        var v{{ q }} = vec4f();
{%- endfor %}
{%- for m in tile_numbers %}
        { let part = vector_part({{ from }}, {{ m }}u * 4u + quad_lane);
{%- for q in (0..3) %} v{{ q }} = fma(use_a(a_{{ m }}_{{ q }}), part, v{{ q }});{% endfor %} }
{%- endfor %}
        let u0 = (v0.x + v0.y) + (v0.z + v0.w);
        let u1 = (v1.x + v1.y) + (v1.z + v1.w);
        let u2 = (v2.x + v2.y) + (v2.z + v2.w);
        let u3 = (v3.x + v3.y) + (v3.z + v3.w);
        let odd = (quad_lane & 1u) == 1u;
        let high = (quad_lane & 2u) == 2u;
        let low_pair = select(u0, u1, odd) + subgroupShuffleXor(select(u1, u0, odd), 1u);
        let high_pair = select(u2, u3, odd) + subgroupShuffleXor(select(u3, u2, odd), 1u);
        product = select(low_pair, high_pair, high) + subgroupShuffleXor(
          select(high_pair, low_pair, high),
          2u
        );
      }

#part register-cg
// Template: loops are unrolled, so that a thread's elements of A stay in registers.
{%- comment -%}
Solves A x = b for one row by conjugate gradients, with A in its threads' registers (cuMF_ALS, Algorithm 1,
with line 5 as r = r - alpha a_p). A thread has one element of each vector. Inputs: x (the initial solution),
b, shift (added to A's diagonal), and is_feature (false for padding). Outputs: x, and `objective` = x^T A x -
2 b^T x.

Each step needs only one reduction over the threads, which gives both alpha and beta: for alpha = |r|^2 /
p.a_p, the new |r|^2 is alpha^2 |a_p|^2 - |r|^2. The objective starts at -x.(b + r), and each step lowers it
by alpha |r|^2.

With biases there are three more inputs: s = sum of theta_v, t_part (this thread's part of t = sum of r_v),
and weight (the bias's own element of the matrix). The bias is eliminated, which leaves A - s s^T / weight and
b - s t / weight. It is returned in beta_row, and the objective includes it. The elimination changes the
matrix in the registers. The alternative, updating s^T p from step to step, would lose digits as p gets small,
since s s^T / weight is far larger than the rest.

With INT8 the matrix in registers is A of features that were scaled to 8 bits. The real matrix is S A S for a
diagonal matrix S, and `scaled` multiplies by this thread's element of S.
{%- endcomment %}
{%- assign scaled = '' %}
{%- if INT8 %}
{%- assign scaled = ' * own_scale' %}
    workgroupBarrier();
{%- endif %}
{%- if BIASES %}
    put_vector(1u, thread, s);
    let t_subgroup = subgroupAdd(t_part);
{%- if SUBGROUPS > 1 %}
    if ((thread & 31u) == 0u) { put_sum(subgroup, 0u, t_subgroup); }
{%- endif %}
    workgroupBarrier();
    var t = {% if SUBGROUPS > 1 %}sum_at(0u).x{% else %}t_subgroup{% endif %};
{%- for other in other_subgroups %}
    t += sum_at({{ other }}u).x;
{%- endfor %}
    b = fma(-t / weight, s{{ scaled }}, b);
    let s_rows = vector_part(1u, tile_row * 4u + quad_row) / weight;
{%- for m in tile_numbers %}
    { let s_columns = vector_part(1u, {{ m }}u * 4u + quad_lane);
{%- for q in (0..3) %} a_{{ m }}_{{ q }} = less(a_{{ m }}_{{ q }}, s_rows[{{ q }}] * s_columns);{% endfor %} }
{%- endfor %}
{%- endif %}
    var product = 0.0;
    put_vector(0u, thread, x{{ scaled }});
    workgroupBarrier();
    {% render 'parts/register-product', from: '0u', tile_numbers: tile_numbers %}
    var r = select(0.0, b - fma(shift, x, product{{ scaled }}), is_feature);
    var p = r;
    let begun = subgroupAdd(x * (b + r));
    var objective = {% if BIASES %}-(t / weight) * t{% else %}0.0{% endif %};
{%- if SUBGROUPS > 1 %}
    if ((thread & 31u) == 3u) { put_sum(SUBGROUPS + subgroup, 3u, begun); }
{%- else %}
    objective -= begun;
{%- endif %}
    // Below this value of |r|^2, a fraction of the first one, the residual is only rounding error and further
    // steps would have random directions.
    var enough = 0.0;
    {{ between }}
    for (var step = 0u; step < params.steps; step++) {
      let which = (step + 1u) & 1u;
      put_vector(which, thread, p{{ scaled }});
      workgroupBarrier();
      {% render 'parts/register-product', from: 'which', tile_numbers: tile_numbers %}
      let ap = select(0.0, fma(shift, p, product{{ scaled }}), is_feature);
      let mine = vec3f(r * r, p * ap, ap * ap);
{%- if SUBGROUPS > 1 %}
      let part = one_of_three(thread, mine);
      if ((thread & 31u) < 3u) { put_sum(which * SUBGROUPS + subgroup, thread & 3u, part); }
      workgroupBarrier();
      // one_of_three returned the third sum in lane 1.
      var total = sum_at(which * SUBGROUPS).xzy;
{%- for other in other_subgroups %}
      total += sum_at(which * SUBGROUPS + {{ other }}u).xzy;
{%- endfor %}
{%- else %}
      let total = subgroupAdd(mine);
{%- endif %}
      if (step == 0u) {
        enough = max(total.x * RESIDUAL_TOLERANCE, 1e-30);
{%- if SUBGROUPS > 1 %}
        objective -= sum_at(SUBGROUPS).w{% for other in other_subgroups %} + sum_at(SUBGROUPS + {{ other }}u).w{% endfor %};
{%- endif %}
      }
      let alpha = select(0.0, total.x / total.y, total.x > enough && goes_on(total.y));
      objective = fma(-alpha, total.x, objective);
      x = fma(alpha, p, x);
      r = fma(-alpha, ap, r);
      let left = max(alpha * alpha * total.z - total.x, 0.0);
      let beta = select(0.0, left / total.x, total.x > enough);
      p = fma(beta, p, r);
    }
{%- if BIASES %}
    let along = subgroupAdd(s{{ scaled }} * x);
{%- if SUBGROUPS > 1 %}
    // The half of the double-buffered sums that the last step does not use.
    let others = ((params.steps + 1u) & 1u) * SUBGROUPS;
    if ((thread & 31u) == 0u) { put_sum(others + subgroup, 0u, along); }
    workgroupBarrier();
    var s_x = sum_at(others).x;
{%- for other in other_subgroups %}
    s_x += sum_at(others + {{ other }}u).x;
{%- endfor %}
{%- else %}
    let s_x = along;
{%- endif %}
    let beta_row = (t - s_x) / weight;
{%- endif %}

#part one-of-three
// Adds three numbers of each thread over the subgroup, with fewer exchanges between lanes than three separate
// sums: after two exchanges each lane continues with only one of the numbers. Lane 0 returns the sum of the
// first number, lane 1 of the third, lane 2 of the second.
fn one_of_three(thread: u32, mine: vec3f) -> f32 {
  let odd = (thread & 1u) == 1u;
  let second = (thread & 2u) == 2u;
  let low = select(mine.x, mine.z, odd) + subgroupShuffleXor(select(mine.z, mine.x, odd), 1u);
  let high = select(mine.y, mine.z, odd) + subgroupShuffleXor(select(mine.z, mine.y, odd), 1u);
  var one = select(low, high, second) + subgroupShuffleXor(select(high, low, second), 2u);
  one += subgroupShuffleXor(one, 4u);
  one += subgroupShuffleXor(one, 8u);
  return one + subgroupShuffleXor(one, 16u);
}
