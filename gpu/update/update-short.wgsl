// Template: a lane keeps whole rows of the system in registers, so loops over them must be unrolled.
//
// r has the n ratings of a row, and Theta the n rows of theta that they belong to. One subgroup solves one row
// in three steps:
//
// 1. It computes Theta Theta^T on tensor cores and moves it to registers, one or two rows in each lane.
// 2. It runs conjugate gradients until the residual is only rounding error.
// 3. It reads the rows of theta again and computes Theta^T y.
#import parts/tensor-directives

// While Theta Theta^T is computed, this memory holds four chunks of 16 bytes of each row of theta, and a
// fifth chunk as padding against bank conflicts. Afterwards it holds tile rows of Theta Theta^T.
var<workgroup> staged: array<vec4<u32>, LONGEST * 5>;
var<workgroup> columns: array<u32, LONGEST>;

#import parts/write-objective
#import parts/finite
#import parts/row-shift

fn rating(at: u32, end: u32) -> vec2<u32> {
  if (at >= end) {
    return vec2<u32>(params.zero_row, 0u);
  }
  let column = indices[at];
  return vec2<u32>(column, bitcast<u32>(values[at]));
}

fn gathered(at: u32, chunk: u32) -> vec4<u32> {
  if (chunk < CHUNKS) {
    return fixed[columns[at] * CHUNKS + chunk];
  }
  return vec4<u32>();
}

fn times(packed: vec4<u32>, y: f32, low: ptr<function, vec4f>, high: ptr<function, vec4f>) {
  *low = fma(vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y)), vec4f(y), *low);
  *high = fma(vec4f(unpack2x16float(packed.z), unpack2x16float(packed.w)), vec4f(y), *high);
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32
) {
  let stride = groups.x * groups.y;
  var number = group.y * groups.x + group.x;
  if (number >= params.count) {
    return;
  }
  let gather_row = lane / 4u;
  let gather_chunk = lane % 4u;
  let tile_half = lane / 16u;
  let tile_line = lane % 16u;
  var row = work[number];
{%- for i in own_rows %}
  var ahead_{{ i }} = rating(row.y + lane + {{ i }}u * 32u, row.y + row.z);
{%- endfor %}
  for (; number < params.count; number += stride) {
    let following = work[min(number + stride, params.count - 1u)];
    // These loads are used only later, so that they overlap with computing the system.
    let shift = shift_of(row.x);
{%- if BIASES %}
    let own_shift = own_shift_of(row.x);
{%- endif %}
{%- for i in own_rows %}
    columns[lane + {{ i }}u * 32u] = ahead_{{ i }}.x;
    let rated_{{ i }} = bitcast<f32>(ahead_{{ i }}.y);
{%- if CENTRE %}
    let bias_{{ i }} = fixed_bias[min(ahead_{{ i }}.x, params.zero_row - 1u)];
    let is_rated_{{ i }} = ahead_{{ i }}.x != params.zero_row;
{%- endif %}
    ahead_{{ i }} = rating(following.y + lane + {{ i }}u * 32u, following.y + following.z);
{%- endfor %}
    workgroupBarrier();

    // Computes Theta Theta^T, 32 features a round. The inner loop of two steps is not unrolled: the driver
    // compiles the loop in two thirds of the time.
{%- for pass in passes %}
    var next_{{ pass }} = gathered(gather_row + {{ pass }}u * 8u, gather_chunk);
{%- endfor %}
{%- for i in tiles %}
{%- for j in tiles %}
    var sum_{{ i }}_{{ j }} = subgroup_matrix_result<f32, 16, 16>(0.0);
{%- endfor %}
{%- endfor %}
    for (var round = 0u; round < ROUNDS; round++) {
{%- for pass in passes %}
      staged[(gather_row + {{ pass }}u * 8u) * 5u + gather_chunk] = next_{{ pass }};
{%- endfor %}
      workgroupBarrier();
      if (round + 1u < ROUNDS) {
{%- for pass in passes %}
        next_{{ pass }} = gathered(gather_row + {{ pass }}u * 8u, gather_chunk + (round + 1u) * 4u);
{%- endfor %}
      }
      for (var step = 0u; step < 2u; step++) {
{%- for i in tiles %}
        let left_{{ i }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
          &staged,
          {{ i }}u * 80u + step * 2u,
          5u
        );
        let right_{{ i }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
          &staged,
          {{ i }}u * 80u + step * 2u,
          5u
        );
{%- endfor %}
{%- for i in tiles %}
{%- for j in tiles %}
        sum_{{ i }}_{{ j }} = subgroupMatrixMultiplyAccumulate(
          left_{{ i }},
          right_{{ j }},
          sum_{{ i }}_{{ j }}
        );
{%- endfor %}
{%- endfor %}
      }
      workgroupBarrier();
    }

    // Moves the rows of Theta Theta^T to registers: lane l has rows l, l + 32, ...
{%- for i in own_rows %}
{%- for v in vectors %}
    var k_{{ i }}_{{ v }} = vec4f();
{%- endfor %}
{%- endfor %}
{%- for i in tiles %}
{%- for j in tiles %}
    subgroupMatrixStore<row_major>(&staged, {{ j }}u * 80u, sum_{{ i }}_{{ j }}, 5u);
{%- endfor %}
    workgroupBarrier();
    if (tile_half == {{ i | modulo: 2 }}u) {
{%- assign own = i | divided_by: 2 | floor %}
{%- for j in tiles %}
{%- for v in (0..3) %}
      k_{{ own }}_{{ j | times: 4 | plus: v }} = bitcast<vec4f>(
        staged[{{ j }}u * 80u + tile_line * 5u + {{ v }}u]
      );
{%- endfor %}
{%- endfor %}
    }
    workgroupBarrier();
{%- endfor %}

    // Conjugate gradients, starting from y = 0. r: right-hand side (the ratings), e: residual, p: search
    // direction.
{%- for i in own_rows %}
    let r_{{ i }} = {% if CENTRE %}select(0.0, rated_{{ i }} - (params.mean + bias_{{ i }}), is_rated_{{ i }}){% else %}rated_{{ i }}{% endif %};
{%- endfor %}
{%- for i in own_rows %}
    var y_{{ i }} = 0.0;
    var e_{{ i }} = r_{{ i }};
    var p_{{ i }} = r_{{ i }};
{%- endfor %}
    var left = subgroupAdd(
      {% for i in own_rows %}{% unless forloop.first %} + {% endunless %}e_{{ i }} * e_{{ i }}{% endfor %}
    );
    let squares = left;
    let enough = left * 1e-11;
{%- if BIASES %}
    // The row's bias is solved as one more feature, for which every rated row of theta has the value
    // sqrt(ratio). So ratio is added to every element of Theta Theta^T.
    let ratio = shift / own_shift;
    var sum_p = subgroupAdd(
      {% for i in own_rows %}{% unless forloop.first %} + {% endunless %}p_{{ i }}{% endfor %}
    );
{%- for i in own_rows %}
    let ratio_{{ i }} = select(0.0, ratio, lane + {{ i }}u * 32u < row.z);
{%- endfor %}
{%- endif %}
    for (var step = 0u; step < 2u * LONGEST && left > enough && left > 1e-35; step++) {
{%- for i in own_rows %}
      var a_{{ i }} = vec4f(
        shift * p_{{ i }},
        {% if BIASES %}ratio_{{ i }} * sum_p{% else %}0.0{% endif %},
        0.0,
        0.0
      );
{%- endfor %}
{%- for part in parts %}
      {% if part > 0 %}if (row.z > {{ part }}u * 16u) {% endif %}{
{%- for v in (0..3) %}
        {
{%- assign at = part | times: 4 | plus: v %}
{%- assign source = at | divided_by: 8 | floor %}
{%- assign from_lane = at | times: 4 | modulo: 32 %}
          let q = vec4f(
            subgroupBroadcast(p_{{ source }}, {{ from_lane }}u),
            subgroupBroadcast(p_{{ source }}, {{ from_lane | plus: 1 }}u),
            subgroupBroadcast(p_{{ source }}, {{ from_lane | plus: 2 }}u),
            subgroupBroadcast(p_{{ source }}, {{ from_lane | plus: 3 }}u)
          );
{%- for i in own_rows %}
          a_{{ i }} = fma(k_{{ i }}_{{ at }}, q, a_{{ i }});
{%- endfor %}
        }
{%- endfor %}
      }
{%- endfor %}
{%- for i in own_rows %}
      let ap_{{ i }} = (a_{{ i }}.x + a_{{ i }}.y) + (a_{{ i }}.z + a_{{ i }}.w);
{%- endfor %}
      let curvature = subgroupAdd(
        {% for i in own_rows %}{% unless forloop.first %} + {% endunless %}p_{{ i }} * ap_{{ i }}{% endfor %}
      );
      if (!goes_on(curvature)) {
        break;
      }
      let alpha = left / curvature;
{%- for i in own_rows %}
      y_{{ i }} = fma(alpha, p_{{ i }}, y_{{ i }});
      e_{{ i }} = fma(-alpha, ap_{{ i }}, e_{{ i }});
{%- endfor %}
{%- if BIASES %}
      let both = subgroupAdd(
        {% for i in own_rows %}{% unless forloop.first %} + {% endunless -%}
        vec2f(e_{{ i }} * e_{{ i }}, e_{{ i }}){% endfor %}
      );
      let now = both.x;
      let beta = now / left;
      sum_p = fma(beta, sum_p, both.y);
{%- else %}
      let now = subgroupAdd(
        {% for i in own_rows %}{% unless forloop.first %} + {% endunless %}e_{{ i }} * e_{{ i }}{% endfor %}
      );
      let beta = now / left;
{%- endif %}
      left = now;
{%- for i in own_rows %}
      p_{{ i }} = fma(beta, p_{{ i }}, e_{{ i }});
{%- endfor %}
    }


    // Sums r^T y, from which the row's objective follows: objective + r^T r = shift r^T y. With biases also
    // sums y, since the row's bias is ratio times that sum.
    let sum_y = subgroupAdd(
      {% for i in own_rows %}{% unless forloop.first %} + {% endunless -%}
      vec2f(r_{{ i }} * y_{{ i }}, y_{{ i }}){% endfor %}
    );
    if (lane == 0u) {
{%- if BIASES %}
      bias[row.x] = select(0.0, ratio * sum_y.y, row.z > 0u);
{%- endif %}
      write_objective(row.x, select(0.0, fma(shift, sum_y.x, -squares), row.z > 0u));
    }

    // x = Theta^T y. Each lane computes eight features. Lanes 0 to 15 add the even rows of Theta, lanes 16 to
    // 31 the odd ones; then the two halves are added.
{%- for part in chunk_groups %}
    {
      let chunk = tile_line + {{ part }}u * 16u;
      let load_chunk = min(chunk, CHUNKS - 1u);
      var low = vec4f();
      var high = vec4f();
{%- for i in own_rows %}
      if (row.z > {{ i }}u * 32u) {
        for (var at = tile_half; at < 32u; at += 8u) {
          let t0 = fixed[columns[{{ i }}u * 32u + at] * CHUNKS + load_chunk];
          let t1 = fixed[columns[{{ i }}u * 32u + at + 2u] * CHUNKS + load_chunk];
          let t2 = fixed[columns[{{ i }}u * 32u + at + 4u] * CHUNKS + load_chunk];
          let t3 = fixed[columns[{{ i }}u * 32u + at + 6u] * CHUNKS + load_chunk];
          times(t0, subgroupShuffle(y_{{ i }}, at), &low, &high);
          times(t1, subgroupShuffle(y_{{ i }}, at + 2u), &low, &high);
          times(t2, subgroupShuffle(y_{{ i }}, at + 4u), &low, &high);
          times(t3, subgroupShuffle(y_{{ i }}, at + 6u), &low, &high);
        }
      }
{%- endfor %}
      low += subgroupShuffleXor(low, 16u);
      high += subgroupShuffleXor(high, 16u);
      if (tile_half == 0u && chunk < CHUNKS) {
        let total = dot(low, vec4f(1.0)) + dot(high, vec4f(1.0));
        if (!is_finite(total)) {
          atomicMin(&status[0], row.x);
        }
        factors[row.x * CHUNKS * 2u + chunk * 2u] = low;
        factors[row.x * CHUNKS * 2u + chunk * 2u + 1u] = high;
        half[row.x * CHUNKS + chunk] = vec4<u32>(
          pack2x16float(low.xy),
          pack2x16float(low.zw),
          pack2x16float(high.xy),
          pack2x16float(high.zw)
        );
      }
    }
{%- endfor %}
    row = following;
    workgroupBarrier();
  }
}
