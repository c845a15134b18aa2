// Conjugate gradients of rows whose products with A come as sums over all ratings, a workgroup a row (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha a_p). `begin` makes the sums the
// residual of x and the first direction, `step` goes one step, `end` gives the bias and the rows that are not finite. With biases the row's bias is eliminated: A - s s^T / weight, b - s t / weight.

var<workgroup> shares: array<f32, THREADS>;
var<workgroup> vector: array<vec4f, QUADS>;

{% render 'parts/finite' %}
{% render 'parts/row-shift' %}

// The sum of a number of all threads.
fn total(mine: f32, thread: u32) -> f32 {
  workgroupBarrier();
  shares[thread] = mine;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      shares[thread] += shares[thread + half];
    }
  }
  workgroupBarrier();
  return shares[0];
}

{% if implicit -%}
// Four numbers of G v for the vector in workgroup memory. Both triangles of G are there.
fn gram_product(quad: u32) -> vec4f {
  var sum = vec4f();
  for (var k = 0u; k < QUADS; k++) {
    let v = vector[k];
    sum = fma(vec4f(v.x), gram[4 * k * QUADS + quad], sum);
    sum = fma(vec4f(v.y), gram[(4 * k + 1) * QUADS + quad], sum);
    sum = fma(vec4f(v.z), gram[(4 * k + 2) * QUADS + quad], sum);
    sum = fma(vec4f(v.w), gram[(4 * k + 3) * QUADS + quad], sum);
  }
  return sum;
}

{% endif -%}
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  let row = params.first + number;
  let base = row * ROW_QUADS;
  // n, t, along, and |r|^2 while the steps go on.
  let numbers = gradients[base + QUADS];
  let n = u32(round(numbers.x));
{%- if biases %}
  let weight = weight_of(row, n);
{%- endif %}
{%- if phase != 'end' %}
  let shift = shift_of(row);
{%- endif %}
{%- for i in owned %}
  let quad_{{ i }} = thread + {{ i }} * THREADS;
  let has_{{ i }} = quad_{{ i }} < QUADS;
{%- if biases %}
  var s_{{ i }} = vec4f();
  if (has_{{ i }}) { s_{{ i }} = gradients[base + QUADS + 4 + quad_{{ i }}]; }
{%- endif %}
{%- endfor %}
{%- if phase == 'begin' %}
  var square = 0.0;
  var beside = 0.0;
{%- for i in owned %}
  var x_{{ i }} = vec4f();
  var r_{{ i }} = vec4f();
  if (has_{{ i }}) {
    x_{{ i }} = given[row * QUADS + quad_{{ i }}];
    vector[quad_{{ i }}] = x_{{ i }};
    r_{{ i }} = fma(vec4f(-shift), x_{{ i }}, gradients[base + quad_{{ i }}]);
    square += dot(x_{{ i }}, x_{{ i }});
{%- if biases %}
    beside += dot(s_{{ i }}, x_{{ i }});
{%- endif %}
  }
{%- endfor %}
  let squares = total(square, thread);
  var along = numbers.z;
{%- if biases %}
  let sum = total(beside, thread);
  along -= numbers.y / weight * sum;
{%- endif %}
  square = 0.0;
{%- for i in owned %}
  if (has_{{ i }}) {
{%- if implicit %}
    r_{{ i }} -= gram_product(quad_{{ i }});
{%- endif %}
{%- if biases %}
    r_{{ i }} = fma(vec4f((sum - numbers.y) / weight), s_{{ i }}, r_{{ i }});
{%- endif %}
    square += dot(r_{{ i }}, r_{{ i }});
  }
{%- endfor %}
  let rho = total(square, thread);
  // The residual of x = 0 is b.
  let of_b = select(rho, along / squares * along, squares > 0.0);
  let enough = max(max(rho * {{ tolerance }}, of_b * {{ bias_tolerance }}), 1e-30);
  let ended = rho <= enough;
{%- for i in owned %}
  if (has_{{ i }}) {
    factors[row * QUADS + quad_{{ i }}] = x_{{ i }};
    gradients[base + quad_{{ i }}] = r_{{ i }};
    direction[row * QUADS + quad_{{ i }}] = select(r_{{ i }}, vec4f(), ended);
  }
{%- endfor %}
  if (thread == 0) {
    gradients[base + QUADS] = vec4f(numbers.xyz, select(rho, 0.0, ended));
    gradients[base + QUADS + 1] = vec4f(enough, 0.0, 0.0, 0.0);
  }
{%- elsif phase == 'step' %}
  let rho = numbers.w;
{%- for i in owned %}
  var p_{{ i }} = vec4f();
  if (has_{{ i }}) {
    p_{{ i }} = direction[row * QUADS + quad_{{ i }}];
    vector[quad_{{ i }}] = p_{{ i }};
  }
{%- endfor %}
{%- if biases %}
  var share = 0.0;
{%- for i in owned %}
  share += dot(s_{{ i }}, p_{{ i }});
{%- endfor %}
  let beside = total(share, thread) / weight;
{%- else %}
  workgroupBarrier();
{%- endif %}
  var bend = 0.0;
{%- for i in owned %}
  var q_{{ i }} = vec4f();
  if (has_{{ i }}) {
    q_{{ i }} = fma(vec4f(shift), p_{{ i }}, given[row * QUADS + quad_{{ i }}]);
{%- if implicit %}
    q_{{ i }} += gram_product(quad_{{ i }});
{%- endif %}
{%- if biases %}
    q_{{ i }} = fma(vec4f(-beside), s_{{ i }}, q_{{ i }});
{%- endif %}
    bend += dot(p_{{ i }}, q_{{ i }});
  }
{%- endfor %}
  let curvature = total(bend, thread);
  let going = rho != 0.0 && (curvature > 0.0 || !is_finite(curvature));
  var alpha = 0.0;
  if (going) { alpha = rho / curvature; }
  // A row that is not finite shows it in x.
  if (!is_finite(curvature) || !is_finite(rho)) { alpha = curvature; }
  var square = 0.0;
{%- for i in owned %}
  var r_{{ i }} = vec4f();
  if (has_{{ i }}) {
    r_{{ i }} = fma(vec4f(-alpha), q_{{ i }}, gradients[base + quad_{{ i }}]);
    square += dot(r_{{ i }}, r_{{ i }});
  }
{%- endfor %}
  let next = total(square, thread);
  let ended = !going || next <= gradients[base + QUADS + 1].x;
  var beta = 0.0;
  if (!ended) { beta = next / rho; }
{%- for i in owned %}
  if (has_{{ i }}) {
    factors[row * QUADS + quad_{{ i }}] = fma(vec4f(alpha), p_{{ i }}, factors[row * QUADS + quad_{{ i }}]);
    gradients[base + quad_{{ i }}] = r_{{ i }};
    direction[row * QUADS + quad_{{ i }}] = select(fma(vec4f(beta), p_{{ i }}, r_{{ i }}), vec4f(), ended);
  }
{%- endfor %}
  if (thread == 0) {
    gradients[base + QUADS] = vec4f(numbers.xyz, select(next, 0.0, ended));
  }
{%- else %}
  var bad = false;
{%- if biases %}
  var share = 0.0;
{%- endif %}
{%- for i in owned %}
  if (has_{{ i }}) {
    let x = select(vec4f(), factors[row * QUADS + quad_{{ i }}], vec4<bool>(n > 0));
    factors[row * QUADS + quad_{{ i }}] = x;
    bad = bad || !(is_finite(x.x) && is_finite(x.y) && is_finite(x.z) && is_finite(x.w));
{%- if biases %}
    share += dot(s_{{ i }}, x);
{%- endif %}
  }
{%- endfor %}
  if (bad) {
    atomicMin(&status, row);
  }
{%- if biases %}
  let sum = total(share, thread);
  if (thread == 0) {
    bias[row] = select(0.0, (numbers.y - sum) / weight, n > 0);
  }
{%- endif %}
{%- endif %}
}
