// Template: each tile or row of A in registers is a variable of its own, so loops over them must be unrolled.
//
// Computes and solves whole rows without writing A to device memory, like update-tensor, with theta in 8
// bits. A is kept as it was summed from whole numbers. If S is the diagonal matrix of the features' scales,
// the real matrix is S A S. So vectors are multiplied by S before and after each product with A.
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

#import parts/int8-declarations
{% if HALF_A %}
#import parts/tensor-cg-declarations
{% else %}
#import parts/register-helpers
{% endif %}

#import parts/write-objective
#import parts/finite
#import parts/row-shift

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  let group = thread / LANES_PER_GROUP;
  let chunk = thread % LANES_PER_GROUP;
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
  let own_scale = scales[min(thread, PADDED - 1u)];
{%- endif %}
{%- unless HALF_A %}
{%- for set in sets %}
{%- for r in (0..3) %}
  var next_{{ set }}_{{ r }} = vec4<u32>();
{%- endfor %}
{%- endfor %}
{%- endunless %}
  var coming = vec2<u32>();
  let stride = size.x * size.y;
  var number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  var row = work[number];
  if (thread < BIN) {
    let end = row.y + row.z;
{%- if BIASES %}
    let ahead_0 = rating_at(row.y + thread, end);
    let ahead_1 = rating_at(row.y + BIN + thread, end);
    put_rating(0u, thread, ahead_0, bias_of(ahead_0.x));
    put_rating(1u, thread, ahead_1, bias_of(ahead_1.x));
{%- else %}
    put_rating(0u, thread, rating_at(row.y + thread, end));
    put_rating(1u, thread, rating_at(row.y + BIN + thread, end));
{%- endif %}
    coming = rating_at(row.y + 2u * BIN + thread, end);
  }
{%- unless HALF_A %}
  var next_x = previous[row.x * PADDED + min(thread, PADDED - 1u)];
{%- endunless %}
  workgroupBarrier();
  for (; number < params.count; number += stride) {
    let following = work[min(number + stride, params.count - 1u)];
    let following_end = following.y + following.z;
    let first = row.y;
    let end = row.y + row.z;
    let inverse = 1.0 / max(f32(row.z), 1.0);
    // These loads are used only later, so that they overlap with summing A.
    let asked = shift_of(row.x);
{%- if BIASES %}
    let own_shift = own_shift_of(row.x);
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
    #import parts/int8-accumulate
    let shift = asked{% if HALF_A %} * inverse{% endif %};
{%- if BIASES %}
    let weight = (max(f32(row.z), 1.0) + own_shift){% if HALF_A %} * inverse{% endif %};
{%- endif %}
{%- if HALF_A %}
    // These loads are used only later, so that they overlap with moving A.
{%- for e in elements %}
    let start_{{ e }} = previous[row.x * PADDED + min({{ e }}u * 32u + lane, PADDED - 1u)];
    let own_scale_{{ e }} = scales[min({{ e }}u * 32u + lane, PADDED - 1u)];
{%- endfor %}
    #import parts/tensor-halves
{%- capture loads %}
    // Starts loading the next row's first ratings. They are stored in the ring buffer while or after this row
    // is solved.
    var ahead_0 = vec2<u32>();
    var ahead_1 = vec2<u32>();
    if (thread < BIN) {
      ahead_0 = rating_at(following.y + thread, following_end);
      ahead_1 = rating_at(following.y + BIN + thread, following_end);
      coming = rating_at(following.y + 2u * BIN + thread, following_end);
    }
{%- if BIASES %}
    var bias_0 = 0.0;
    var bias_1 = 0.0;
{%- endif %}
{%- endcapture %}
{%- capture between %}
    if (thread < BIN) {
{%- if BIASES %}
      // Loads the biases that belong to the next row's ratings while this row is solved.
      bias_0 = bias_of(ahead_0.x);
      bias_1 = bias_of(ahead_1.x);
{%- else %}
      put_rating(0u, thread, ahead_0);
      put_rating(1u, thread, ahead_1);
{%- endif %}
    }
{%- endcapture %}
    #import parts/tensor-cg
{%- if BIASES %}
    if (thread < BIN) {
      put_rating(0u, thread, ahead_0, bias_0);
      put_rating(1u, thread, ahead_1, bias_1);
    }
{%- endif %}
{%- for e in elements %}
    if (subgroup == {{ e }}u && thread < PADDED) {
      let solved = select(0.0, x_{{ e }}, row.z > 0u);
      if (!is_finite(solved)) {
        atomicMin(&status[0], row.x);
      }
      factors[row.x * PADDED + thread] = solved;
      half[row.x * PADDED + thread] = f16(solved);
    }
{%- endfor %}
    if (thread == 0u) {
{%- if BIASES %}
      bias[row.x] = select(0.0, beta_row, row.z > 0u);
{%- endif %}
      write_objective(row.x, select(0.0, objective / inverse, row.z > 0u));
    }
{%- else %}
{%- for m in tile_numbers %}
    var a_{{ m }}_0 = {{ zero_a }};
    var a_{{ m }}_1 = {{ zero_a }};
    var a_{{ m }}_2 = {{ zero_a }};
    var a_{{ m }}_3 = {{ zero_a }};
{%- endfor %}
    #import parts/tensor-exchange
    b = b * own_scale * params.unscale;
{%- if BIASES %}
    t_part = t_part * params.unscale;
{%- endif %}
    // Starts loading the next row's initial x and first ratings; they are used after this row is solved.
    next_x = previous[following.x * PADDED + min(thread, PADDED - 1u)];
    var ahead_0 = vec2<u32>();
    var ahead_1 = vec2<u32>();
    if (thread < BIN) {
      ahead_0 = rating_at(following.y + thread, following_end);
      ahead_1 = rating_at(following.y + BIN + thread, following_end);
      coming = rating_at(following.y + 2u * BIN + thread, following_end);
    }
    if (!is_feature) {
      b = 0.0;
      x = 0.0;
{%- if BIASES %}
      s = 0.0;
{%- endif %}
    }
{%- if BIASES %}
    // Loads the biases that belong to the next row's ratings while this row is solved.
    var bias_0 = 0.0;
    var bias_1 = 0.0;
{%- capture between %}
    if (thread < BIN) {
      bias_0 = bias_of(ahead_0.x);
      bias_1 = bias_of(ahead_1.x);
    }
{%- endcapture %}
{%- else %}
{%- capture between %}
    if (thread < BIN) {
      put_rating(0u, thread, ahead_0);
      put_rating(1u, thread, ahead_1);
    }
{%- endcapture %}
{%- endif %}
    #import parts/register-cg
{%- if BIASES %}
    if (thread < BIN) {
      put_rating(0u, thread, ahead_0, bias_0);
      put_rating(1u, thread, ahead_1, bias_1);
    }
{%- endif %}
    if (thread < PADDED) {
      let solved = select(0.0, x, row.z > 0u);
      if (!is_finite(solved)) {
        atomicMin(&status[0], row.x);
      }
      factors[row.x * PADDED + thread] = solved;
      half[row.x * PADDED + thread] = f16(solved);
      if (thread == 0u) {
{%- if BIASES %}
        bias[row.x] = select(0.0, beta_row, row.z > 0u);
{%- endif %}
        write_objective(row.x, select(0.0, objective, row.z > 0u));
      }
    }
{%- endif %}
    row = following;
    workgroupBarrier();
  }
}
