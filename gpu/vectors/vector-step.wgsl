// A step of conjugate gradients of rows whose products with A lie in slots of vectors (vectors.ts), one workgroup a row (cuMF_ALS, Algorithm 1,
// with line 5 as r = r - alpha a_p). `begin` takes x from the last version, `residual` makes r from the first products, `step` goes one step.
// With biases the row's bias is eliminated: A - s s^T / weight, b - s t / weight.
diagnostic(off, subgroup_uniformity);
enable subgroups;

var<workgroup> shares: array<f32, THREADS>;

{% render 'parts/finite' %}
{% render 'parts/write-row', half: half %}
{% render 'parts/row-shift' %}

// Four numbers, summed over the row's slots in their order.
fn summed(at: u32, slot_count: u32) -> vec4f {
  var sum = given[at];
  for (var slot = 1u; slot < slot_count; slot++) {
    sum += given[at + slot * SLOT_QUADS];
  }
  return sum;
}

// The sum of a number of all threads.
fn total(mine: f32, subgroup: u32, lane: u32, subgroup_size: u32) -> f32 {
  let share = subgroupAdd(mine);
  workgroupBarrier();
  if (lane == 0) {
    shares[subgroup] = share;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var other = 0u; other < THREADS / subgroup_size; other++) {
    sum += shares[other];
  }
  return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) subgroup_size: u32) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, slots. The state has the entry's number.
  let entry = work[number];
  let row = entry.x;
  let own = number * STATE_QUADS;
{%- if phase == 'begin' %}
{%- for i in owned %}
  let quad_{{ i }} = thread + {{ i }} * THREADS;
  if (quad_{{ i }} < QUADS) {
    let x = given[row * QUADS + quad_{{ i }}];
    state[own + quad_{{ i }}] = x;
    factors[row * QUADS + quad_{{ i }}] = x;
  }
{%- endfor %}
{%- else %}
  let shift = shift_of(entry.x);
  let base = entry.y * SLOT_QUADS;
{%- if biases %}
  let weight = weight_of(entry.x, entry.z);
  let along = summed(base + QUADS, entry.w).x;
{%- endif %}
{%- if phase == 'residual' %}
  var square = 0.0;
{%- for i in owned %}
  let quad_{{ i }} = thread + {{ i }} * THREADS;
  if (quad_{{ i }} < QUADS) {
    var r = summed(base + quad_{{ i }}, entry.w) - shift * factors[row * QUADS + quad_{{ i }}];
{%- if biases %}
    let s = summed(base + QUADS + 1 + quad_{{ i }}, entry.w);
    state[own + 2 * QUADS + quad_{{ i }}] = s;
    r -= s * (along / weight);
{%- endif %}
    state[own + quad_{{ i }}] = r;
    state[own + QUADS + quad_{{ i }}] = r;
    square += dot(r, r);
  }
{%- endfor %}
  let squares = total(square, subgroup, lane, subgroup_size);
  if (thread == 0) {
    state[own + STATE_QUADS - 1] = vec4f(squares, max(squares * {{ tolerance }}, 1e-30), {% if biases %}along{% else %}0.0{% endif %}, 0.0);
  }
{%- else %}
  let numbers = state[own + STATE_QUADS - 1];
  var share = 0.0;
{%- for i in owned %}
  let quad_{{ i }} = thread + {{ i }} * THREADS;
  var p_{{ i }} = vec4f();
  var a_{{ i }} = vec4f();
  if (quad_{{ i }} < QUADS) {
    p_{{ i }} = state[own + quad_{{ i }}];
    a_{{ i }} = fma(vec4f(shift), p_{{ i }}, summed(base + quad_{{ i }}, entry.w));
{%- if biases %}
    a_{{ i }} -= state[own + 2 * QUADS + quad_{{ i }}] * (along / weight);
{%- endif %}
    share += dot(p_{{ i }}, a_{{ i }});
  }
{%- endfor %}
  let curvature = total(share, subgroup, lane, subgroup_size);
  let going = numbers.x > numbers.y && curvature > 0.0;
  let alpha = select(0.0, numbers.x / curvature, going);
  var square = 0.0;
{%- for i in owned %}
  var x_{{ i }} = vec4f();
  var r_{{ i }} = vec4f();
  if (quad_{{ i }} < QUADS) {
    x_{{ i }} = fma(vec4f(alpha), p_{{ i }}, factors[row * QUADS + quad_{{ i }}]);
    r_{{ i }} = fma(vec4f(-alpha), a_{{ i }}, state[own + QUADS + quad_{{ i }}]);
    square += dot(r_{{ i }}, r_{{ i }});
  }
{%- endfor %}
  let squares = total(square, subgroup, lane, subgroup_size);
{%- if biases %}
  let left = fma(-alpha, along, numbers.z);
{%- endif %}
  if (params.last == 1) {
    // NaN compares false, and would end the steps unseen.
    var bad = !is_finite(squares) || !is_finite(curvature);
{%- for i in owned %}
    if (quad_{{ i }} < QUADS) {
      bad = !write_quad(row, quad_{{ i }}, select(vec4f(), x_{{ i }}, vec4<bool>(entry.z > 0))) || bad;
    }
{%- endfor %}
    if (bad) {
      atomicMin(&status, row);
    }
{%- if biases %}
    if (thread == 0) {
      bias[row] = select(0.0, left / weight, entry.z > 0);
    }
{%- endif %}
  } else {
    let beta = select(0.0, squares / numbers.x, going);
{%- for i in owned %}
    if (quad_{{ i }} < QUADS) {
      factors[row * QUADS + quad_{{ i }}] = x_{{ i }};
      state[own + QUADS + quad_{{ i }}] = r_{{ i }};
      state[own + quad_{{ i }}] = fma(vec4f(beta), p_{{ i }}, r_{{ i }});
    }
{%- endfor %}
    if (thread == 0) {
      state[own + STATE_QUADS - 1] = vec4f(squares, numbers.y, {% if biases %}left{% else %}0.0{% endif %}, 0.0);
    }
  }
{%- endif %}
{%- endif %}
}
