// Template: each tile or row of A in registers is a variable of its own, so loops over them must be unrolled.
//
// Computes and solves whole rows without writing A to device memory. A workgroup sums a row's A and b on
// tensor cores, moves A to registers, and solves there by conjugate gradients. It takes one row after the
// other from the list, in which the longest rows are first. While a row is solved, the ratings of the next
// one are loaded.
//
// HALF_A: conjugate gradients run on tensor cores with A / n in float16. Otherwise each thread has a row of A
// in float32.
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

#import parts/tensor-declarations
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
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  let gather_row = thread / LANES_PER_ROW;
  let chunk = thread % LANES_PER_ROW;
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
{%- endif %}
{%- unless HALF_A %}
{%- for pass in passes %}
  var next_{{ pass }} = vec4<u32>();
{%- endfor %}
{%- if CENTRE %}
  var next_bias = 0.0;
{%- endif %}
{%- endunless %}
  var coming = vec2<u32>();
  let stride = groups.x * groups.y;
  var number = group.y * groups.x + group.x;
  if (number >= params.count) {
    return;
  }
  var row = work[number];
  if (thread < BIN) {
    let end = row.y + row.z;
    ring[thread] = entry_of(rating_at(row.y + thread, end));
    ring[BIN + thread] = entry_of(rating_at(row.y + BIN + thread, end));
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
    #import parts/tensor-accumulate
    let shift = asked{% if HALF_A %} * inverse{% endif %};
{%- if BIASES %}
    let weight = (max(f32(row.z), 1.0) + own_shift){% if HALF_A %} * inverse{% endif %};
{%- endif %}
{%- if HALF_A %}
    // These loads are used only later, so that they overlap with moving A.
{%- for e in elements %}
    let start_{{ e }} = previous[row.x * PADDED + min({{ e }}u * 32u + lane, PADDED - 1u)];
{%- endfor %}
    #import parts/tensor-halves
{%- capture loads %}
    // Starts loading the next row's first ratings; they are used after this row is solved.
    var ahead_0 = vec2<u32>();
    var ahead_1 = vec2<u32>();
    if (thread < BIN) {
      ahead_0 = rating_at(following.y + thread, following_end);
      ahead_1 = rating_at(following.y + BIN + thread, following_end);
      coming = rating_at(following.y + 2u * BIN + thread, following_end);
    }
{%- endcapture %}
{%- capture between %}
    if (thread < BIN) {
      ring[thread] = entry_of(ahead_0);
      ring[BIN + thread] = entry_of(ahead_1);
    }
{%- endcapture %}
    #import parts/tensor-cg
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
    b = b * params.unscale;
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
{%- capture between %}
    if (thread < BIN) {
      ring[thread] = entry_of(ahead_0);
      ring[BIN + thread] = entry_of(ahead_1);
    }
{%- endcapture %}
    #import parts/register-cg
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
