// Template: each tile or row of A in registers is a variable of its own, so loops over them must be unrolled.
//
// A workgroup sums a row's A and b on tensor cores, moves A to registers, and solves there by conjugate
// gradients. Meanwhile the ratings of the next row are loaded. This is the text of three kernels:
//
//   update-tensor            theta in float16
//   update-int8              INT8: theta in 8 bits. A is kept as it was summed from whole numbers. If S is the
//                            diagonal matrix of the features' scales, the real matrix is S A S, so vectors are
//                            multiplied by S before and after each product with A.
//   update-implicit-tensor   IMPLICIT: weighted ratings. A of every row starts as the Gram matrix. The first
//                            rows of theta of the next row are loaded while a row is solved.
//
// HALF_A: conjugate gradients run on tensor cores with A / n in float16. Otherwise each thread has a row of A
// in float32.
#import parts/tensor-directives

{% if INT8 %}
#import parts/int8-declarations
{% else %}
#import parts/tensor-declarations
{% endif %}
{% if HALF_A %}
#import parts/tensor-cg-declarations
{% else %}
#import parts/register-helpers
{% endif %}

#import parts/write-objective
#import parts/finite
{% unless IMPLICIT %}
#import parts/row-shift
{% endunless %}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
{%- if INT8 %}
  let group = thread / LANES_PER_GROUP;
  let chunk = thread % LANES_PER_GROUP;
{%- else %}
  let gather_row = thread / LANES_PER_ROW;
  let chunk = thread % LANES_PER_ROW;
{%- endif %}
{%- if HALF_A %}
  let lane = thread & 31u;
{%- else %}
  // Layout of A in the solver: four adjacent lanes share four rows of A, each lane has a quarter of their
  // columns. After a product, each lane gets the result of one of these rows, row `thread`.
  let quad_row = (thread / 4u) & 3u;
  let quad_lane = thread & 3u;
  let tile_row = min(thread / 16u, TILES - 1u);
  let own_tile = tile_row;
  let own_line = thread & 15u;
  let is_feature = thread < RANK;
{%- if INT8 %}
  let own_scale = scales[min(thread, PADDED - 1u)];
{%- for set in sets %}
{%- for r in (0..3) %}
  var next_{{ set }}_{{ r }} = vec4<u32>();
{%- endfor %}
{%- endfor %}
{%- else %}
{%- for pass in passes %}
  var next_{{ pass }} = vec4<u32>();
{%- if IMPLICIT %}
  var rated_{{ pass }} = 0u;
{%- endif %}
{%- endfor %}
{%- if CENTRE %}
  var next_bias = 0.0;
{%- endif %}
{%- endif %}
{%- endif %}
  var coming = vec2<u32>();
  let stride = size.x * size.y;
  var number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  var row = work[number];
  if (thread < BIN) {
    let end = row.y + row.z;
    let ahead_0 = rating_at(row.y + thread, end);
    let ahead_1 = rating_at(row.y + BIN + thread, end);
{%- if INT8 and BIASES %}
    put_rating(0u, thread, ahead_0, bias_of(ahead_0.x));
    put_rating(1u, thread, ahead_1, bias_of(ahead_1.x));
{%- elsif INT8 %}
    put_rating(0u, thread, ahead_0);
    put_rating(1u, thread, ahead_1);
{%- else %}
    ring[thread] = entry_of(ahead_0);
    ring[BIN + thread] = entry_of(ahead_1);
{%- endif %}
    coming = rating_at(row.y + 2u * BIN + thread, end);
  }
{%- unless HALF_A %}
  var next_x = previous[row.x * PADDED + min(thread, PADDED - 1u)];
{%- endunless %}
{%- if IMPLICIT %}
  var next_shift = shifts[row.x];
{%- endif %}
  workgroupBarrier();
{%- if IMPLICIT %}
  {
    let slot = 0u;
    #import parts/tensor-gather
  }
{%- endif %}
  for (; number < params.count; number += stride) {
    let following = work[min(number + stride, params.count - 1u)];
    let following_end = following.y + following.z;
    let first = row.y;
    let end = row.y + row.z;
{%- if IMPLICIT %}
    let shift = next_shift;
    let inverse = 1.0;
{%- else %}
    let inverse = 1.0 / max(f32(row.z), 1.0);
    // These loads are used only later, so that they overlap with summing A.
    let asked = shift_of(row.x);
{%- if BIASES %}
    let own_shift = own_shift_of(row.x);
{%- endif %}
{%- endif %}
{%- if HALF_A %}
{%- for e in elements %}
    var b_{{ e }} = 0.0;
{%- if BIASES %}
    var s_{{ e }} = 0.0;
{%- endif %}
{%- endfor %}
{%- if BIASES %}
    var t = 0.0;
{%- endif %}
{%- else %}
{%- if BIASES %}
    var s = 0.0;
{%- endif %}
    var x = next_x;
    var b = 0.0;
{%- endif %}
{%- if INT8 %}
    #import parts/int8-accumulate
{%- else %}
    #import parts/tensor-accumulate
{%- endif %}
{%- unless IMPLICIT %}
    let shift = asked{% if HALF_A %} * inverse{% endif %};
{%- endunless %}
{%- if BIASES %}
    let weight = (max(f32(row.z), 1.0) + own_shift){% if HALF_A %} * inverse{% endif %};
{%- endif %}
{%- comment %} `loads` starts loading the next row's first ratings, which are used after this row is solved. `between`
is inserted where they have arrived. {% endcomment %}
{%- capture loads %}
    var ahead_0 = vec2<u32>();
    var ahead_1 = vec2<u32>();
    if (thread < BIN) {
      ahead_0 = rating_at(following.y + thread, following_end);
      ahead_1 = rating_at(following.y + BIN + thread, following_end);
      coming = rating_at(following.y + 2u * BIN + thread, following_end);
    }
{%- if INT8 and BIASES %}
    var bias_0 = 0.0;
    var bias_1 = 0.0;
{%- endif %}
{%- endcapture %}
{%- capture between %}
    if (thread < BIN) {
{%- if INT8 and BIASES %}
      // Loads the biases that belong to the next row's ratings while this row is solved.
      bias_0 = bias_of(ahead_0.x);
      bias_1 = bias_of(ahead_1.x);
{%- elsif INT8 %}
      put_rating(0u, thread, ahead_0);
      put_rating(1u, thread, ahead_1);
{%- else %}
      ring[thread] = entry_of(ahead_0);
      ring[BIN + thread] = entry_of(ahead_1);
{%- endif %}
    }
{%- if IMPLICIT %}
    workgroupBarrier();
    {
      let slot = 0u;
      #import parts/tensor-gather
    }
{%- endif %}
{%- endcapture %}
{%- if HALF_A %}
    // These loads are used only later, so that they overlap with moving A.
{%- for e in elements %}
    let start_{{ e }} = previous[row.x * PADDED + min({{ e }}u * 32u + lane, PADDED - 1u)];
{%- if INT8 %}
    let own_scale_{{ e }} = scales[min({{ e }}u * 32u + lane, PADDED - 1u)];
{%- endif %}
{%- endfor %}
    #import parts/tensor-halves
    #import parts/tensor-cg
{%- else %}
{%- for m in tile_numbers %}
    var a_{{ m }}_0 = {{ zero_a }};
    var a_{{ m }}_1 = {{ zero_a }};
    var a_{{ m }}_2 = {{ zero_a }};
    var a_{{ m }}_3 = {{ zero_a }};
{%- endfor %}
    #import parts/tensor-exchange
    b = b{% if INT8 %} * own_scale{% endif %} * params.unscale;
{%- if BIASES %}
    t_part = t_part * params.unscale;
{%- endif %}
    next_x = previous[following.x * PADDED + min(thread, PADDED - 1u)];
{%- if IMPLICIT %}
    next_shift = shifts[following.x];
{%- endif %}
    {{ loads }}
    if (!is_feature) {
      b = 0.0;
      x = 0.0;
{%- if BIASES %}
      s = 0.0;
{%- endif %}
    }
    #import parts/register-cg
{%- endif %}
{%- if INT8 and BIASES %}
    if (thread < BIN) {
      put_rating(0u, thread, ahead_0, bias_0);
      put_rating(1u, thread, ahead_1, bias_1);
    }
{%- endif %}
{%- capture write %}
      if (!is_finite(solved)) {
        atomicMin(&status[0], row.x);
      }
      factors[row.x * PADDED + thread] = solved;
      half[row.x * PADDED + thread] = f16(solved);
{%- endcapture %}
{%- if HALF_A %}
{%- for e in elements %}
    if (subgroup == {{ e }}u && thread < PADDED) {
      let solved = select(0.0, x_{{ e }}, row.z > 0u);
      {{ write }}
    }
{%- endfor %}
{%- else %}
    if (thread < PADDED) {
      let solved = select(0.0, x, row.z > 0u{% if IMPLICIT %} && is_feature{% endif %});
      {{ write }}
    }
{%- endif %}
    if (thread == 0u) {
{%- if BIASES %}
      bias[row.x] = select(0.0, beta_row, row.z > 0u);
{%- endif %}
      write_objective(row.x, select(0.0, objective{% if HALF_A %} / inverse{% endif %}, row.z > 0u));
    }
    row = following;
    workgroupBarrier();
  }
}
