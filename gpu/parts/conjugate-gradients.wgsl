#part vector-row
// Template: rows are listed or consecutive, by variant.
{%- comment -%}
Finds the row that LANES threads share. `entry` is (row, first slot, number n of ratings, number of slots): an
element of the list `work` or, without `listed`, made here for consecutive rows. `own` is the index of the
row's gradients and direction. Threads after the last row repeat the last row's work and write nothing:
`exists` is false.
{%- endcomment %}
  let batch = thread / LANES;
  let lane = thread % LANES;
  let number = (id.y * size.x + id.x) * ROWS + batch;
  let exists = number < params.count;
  let known = min(number, params.count - 1);
{%- if listed %}
  let entry = work[known];
  let own = known;
{%- else %}
  let own = params.first + known;
  let entry = vec4u(own, own, u32(round(gradients[own * ROW_QUADS + QUADS].x)), 1);
{%- endif %}
  let row = entry.x;
  let n = entry.z;
  let base = own * ROW_QUADS;
{%- for i in owned %}
  let quad_{{ i }} = lane + {{ i }} * LANES;
{%- endfor %}

#part cg-begin
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Starts the conjugate gradients of a row. Before it, the row's LANES threads have in registers the initial x, r
= sum of (r_v - theta_v^T x) theta_v and, with biases, s = sum of theta_v. `rated` is the sum of r_v, `along`
the sum of r_v theta_v^T x.

Makes r the residual and p the first direction. Sets `rho` = |r|^2 (0 if no step is needed), `enough` (the rho
at which the steps end) and `objective` = x^T A x - 2 b^T x.

With biases, the row's bias is eliminated: the system becomes A - s s^T / weight and b - s t / weight, where t
is `rated` and weight the bias's own element of the matrix, and t^2 / weight is subtracted from the objective.
{%- endcomment %}
  {
    var square = 0.0;
    var beside = 0.0;
{%- for i in owned %}
    r_{{ i }} = fma(vec4f(-shift), x_{{ i }}, r_{{ i }});
    square += dot(x_{{ i }}, x_{{ i }});
{%- if biases %}
    beside += dot(s_{{ i }}, x_{{ i }});
{%- endif %}
{%- endfor %}
    let of_x = totals(square, beside, thread);
    let squares = of_x.x;
    var product = along;
{%- if biases %}
    let across = of_x.y;
    product -= rated / weight * across;
{%- endif %}
    square = 0.0;
    beside = 0.0;
{%- for i in owned %}
{%- if biases %}
    r_{{ i }} = fma(vec4f((across - rated) / weight), s_{{ i }}, r_{{ i }});
{%- endif %}
    square += dot(r_{{ i }}, r_{{ i }});
    beside += dot(x_{{ i }}, r_{{ i }});
{%- endfor %}
    let of_r = totals(square, beside, thread);
    rho = of_r.x;
    objective = -(product + of_r.y){% if biases %} - rated / weight * rated{% endif %};
    // |b| is at least x^T b / |x|, or for x = 0 the residual itself.
    let square_of_b = select(rho, product / squares * product, squares > 0.0);
    // This minimum keeps products of residuals from underflowing.
    enough = max(max(rho * {{ tolerances.residual }}, square_of_b * {{ tolerances.bias }}), 1e-30);
    let ended = rho <= enough;
    rho = select(rho, 0.0, ended);
{%- for i in owned %}
    p_{{ i }} = select(r_{{ i }}, vec4f(), ended);
{%- endfor %}
  }

#part cg-advance
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Takes one step of a row's conjugate gradients along p (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha
a_p). Before it, q must be the sum of (theta_v^T p) theta_v; other variables are as in cg-begin. The step
lowers the objective by alpha |r|^2.

If the row has taken its last step, p is 0 and nothing changes.
{%- endcomment %}
  {
{%- if biases %}
    var beside = 0.0;
{%- for i in owned %}
    beside += dot(s_{{ i }}, p_{{ i }});
{%- endfor %}
    let across = total(beside, thread) / weight;
{%- endif %}
    var bend = 0.0;
{%- for i in owned %}
    q_{{ i }} = fma(vec4f(shift), p_{{ i }}, q_{{ i }});
{%- if biases %}
    q_{{ i }} = fma(vec4f(-across), s_{{ i }}, q_{{ i }});
{%- endif %}
    bend += dot(p_{{ i }}, q_{{ i }});
{%- endfor %}
    let curvature = total(bend, thread);
    let going = rho != 0.0 && goes_on(curvature);
    var alpha = 0.0;
    if (going) { alpha = rho / curvature; }
    // If a number is not finite, alpha is set so that x becomes not finite too. The end of the solve reports
    // that.
    if (!is_finite(curvature) || !is_finite(rho)) { alpha = curvature; }
    objective = fma(-alpha, rho, objective);
    var square = 0.0;
{%- for i in owned %}
    x_{{ i }} = fma(vec4f(alpha), p_{{ i }}, x_{{ i }});
    r_{{ i }} = fma(vec4f(-alpha), q_{{ i }}, r_{{ i }});
    square += dot(r_{{ i }}, r_{{ i }});
{%- endfor %}
    let next = total(square, thread);
    let ended = !going || next <= enough;
    var beta = 0.0;
    if (!ended) { beta = next / rho; }
    rho = select(next, 0.0, ended);
{%- for i in owned %}
    p_{{ i }} = select(fma(vec4f(beta), p_{{ i }}, r_{{ i }}), vec4f(), ended);
{%- endfor %}
  }

#part cg-end
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Writes a solved row: x, the bias t / weight - s.x / weight, and the objective. If x is not finite, the row's
number is recorded in `status`. A row without ratings becomes 0.
{%- endcomment %}
  var beside = 0.0;
  var bad = false;
{%- for i in owned %}
  let solved_{{ i }} = select(vec4f(), x_{{ i }}, vec4<bool>(n > 0));
  if (exists && quad_{{ i }} < QUADS) {
    bad = !write_quad(row, quad_{{ i }}, solved_{{ i }}) || bad;
  }
{%- if biases %}
  beside += dot(s_{{ i }}, solved_{{ i }});
{%- endif %}
{%- endfor %}
  if (bad) {
    atomicMin(&status[0], row);
  }
{%- if biases %}
  let across = total(beside, thread);
{%- endif %}
  if (exists && lane == 0) {
{%- if biases %}
    bias[row] = select(0.0, (rated - across) / weight, n > 0);
{%- endif %}
    write_objective(row, select(0.0, objective, n > 0));
  }

#part row-total
var<workgroup> shares: array<vec2f, THREADS>;

// Adds two numbers of each thread over the LANES threads of a row, of which only the first `among` have a
// number.
fn totals_among(among: u32, mine: vec2f, thread: u32) -> vec2f {
  workgroupBarrier();
  shares[thread] = mine;
  workgroupBarrier();
  let first = thread / LANES * LANES;
  if (LANES > 64) {
    // The threads after the first `among` have zeros.
    for (var half = LANES / 2; half > 0; half /= 2) {
      if (thread - first < half) {
        shares[thread] += shares[thread + half];
      }
      workgroupBarrier();
    }
    return shares[first];
  }
  var sum = vec2f();
  for (var lane = 0u; lane < among; lane++) {
    sum += shares[first + lane];
  }
  return sum;
}

// The same over the threads that have features.
fn totals(one: f32, other: f32, thread: u32) -> vec2f {
  return totals_among(SHARES, vec2f(one, other), thread);
}
fn total(mine: f32, thread: u32) -> f32 {
  return totals(mine, 0.0, thread).x;
}
