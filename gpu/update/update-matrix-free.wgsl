// Solves rows of few ratings by conjugate gradients that never form A: A p = sum of theta_v (theta_v^T p) + lambda n p
// (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha a_p), on the row's theta_v in workgroup memory.
//
// A workgroup has ROWS rows, and a row LANES threads. For the products theta_v^T p a thread takes whole ratings, for their sum over
// the ratings groups of four features, those of x, r and p that it keeps. Staged rows are an odd number of fours apart, so that
// threads with different ratings read different banks. A finished row goes on with steps of length 0.

var<workgroup> staged: array<{{ quad_type }}, ROWS * LONGEST * PITCH>;
var<workgroup> ratings: array<f32, ROWS * LONGEST>;
var<workgroup> columns: array<u32, ROWS * LONGEST>;
var<workgroup> products: array<f32, ROWS * LONGEST>;
var<workgroup> direction: array<vec4f, ROWS * QUADS>;
var<workgroup> shares: array<vec2f, ROWS * LANES>;

{% render 'parts/tell-objective' %}
{% render 'parts/finite' %}
{% render 'parts/write-row', half: false %}
{% render 'parts/row-shift' %}

fn features(content: {{ quad_type }}) -> vec4f {
{% if precision == 'f16' %}
  return vec4f(unpack2x16float(content.x), unpack2x16float(content.y));
{% else %}
  return content;
{% endif %}
}

// Sums the `shares` of the threads of a row.
fn total(batch: u32) -> vec2f {
  var sum = vec2f();
  for (var lane = 0u; lane < SHARES; lane++) {
    sum += shares[batch * LANES + lane];
  }
  return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = id.y * size.x + id.x;
  let batch = thread / LANES;
  let lane = thread % LANES;
  let exists = number * ROWS + batch < params.count;
  // Entry: row, first rating, ratings, 0.
  var entry = vec4u();
  if (exists) {
    entry = work[number * ROWS + batch];
  }
  let row = entry.x;
  let count = min(entry.z, LONGEST);
  let base = batch * LONGEST;
  let shift = shift_of(row);

  for (var k = lane; k < count; k += LANES) {
    let column = indices[entry.y + k];
    columns[base + k] = column;
    ratings[base + k] = values[entry.y + k];
  }
{% for part in owned %}
  let quad_{{ part }} = lane + {{ part }} * LANES;
  let owns_{{ part }} = quad_{{ part }} < QUADS;
  var x_{{ part }} = vec4f();
  if (owns_{{ part }} && count > 0) {
    x_{{ part }} = factors[row * QUADS + quad_{{ part }}];
  }
  var b_{{ part }} = vec4f();
{% if biases %}
  var s_{{ part }} = vec4f();
{% endif %}
  var r_{{ part }} = vec4f();
  var p_{{ part }} = x_{{ part }};
{% endfor %}
  workgroupBarrier();
  for (var at = lane; at < count * QUADS; at += LANES) {
    let k = at / QUADS;
    let quad = at % QUADS;
    staged[(base + k) * PITCH + quad] = fixed[columns[base + k] * QUADS + quad];
  }

{% if biases %}
  // The row's bias is eliminated: A - s s^T / weight, b - s t / weight; theta_v^T p less its part of s^T p / weight gives the products with the first.
  let weight = weight_of(row, count);
  var t = 0.0;
{% endif %}
  var rho = 0.0;
  var enough = 0.0;
  var done = false;
  var bad = false;
  // Step 0 makes b and r = b - A x.
  for (var step = 0u; step <= params.steps; step++) {
{% for part in owned %}
    if (owns_{{ part }}) {
      direction[batch * QUADS + quad_{{ part }}] = p_{{ part }};
    }
{% endfor %}
    workgroupBarrier();
    for (var k = lane; k < count; k += LANES) {
      var sum = vec4f();
      for (var quad = 0u; quad < QUADS; quad++) {
        sum = fma(features(staged[(base + k) * PITCH + quad]), direction[batch * QUADS + quad], sum);
      }
      products[base + k] = sum.x + sum.y + (sum.z + sum.w);
    }
    workgroupBarrier();
{% if biases %}
    var along = 0.0;
    for (var k = 0u; k < count; k++) {
      along += products[base + k];
    }
    along /= weight;
{% endif %}
    var share = 0.0;
{% for part in owned %}
    var q_{{ part }} = vec4f();
    if (owns_{{ part }}) {
      for (var k = 0u; k < count; k++) {
        let theta = features(staged[(base + k) * PITCH + quad_{{ part }}]);
        q_{{ part }} = fma(vec4f(products[base + k]), theta, q_{{ part }});
        if (step == 0) {
          b_{{ part }} = fma(vec4f(ratings[base + k]), theta, b_{{ part }});
{% if biases %}
          s_{{ part }} += theta;
{% endif %}
        }
      }
{% if biases %}
      if (step == 0) {
        t = 0.0;
        for (var k = 0u; k < count; k++) {
          t += ratings[base + k];
        }
        b_{{ part }} -= s_{{ part }} * (t / weight);
      }
      q_{{ part }} -= s_{{ part }} * along;
{% endif %}
      q_{{ part }} = fma(vec4f(shift), p_{{ part }}, q_{{ part }});
      share += dot(p_{{ part }}, q_{{ part }});
    }
{% endfor %}
    shares[thread] = vec2f(share, 0.0);
    workgroupBarrier();
    var alpha = 0.0;
    if (step > 0 && !done) {
      alpha = rho / total(batch).x;
    }
    var squares = vec2f();
{% for part in owned %}
    if (step == 0) {
      r_{{ part }} = b_{{ part }} - q_{{ part }};
    } else {
      x_{{ part }} = fma(vec4f(alpha), p_{{ part }}, x_{{ part }});
      r_{{ part }} = fma(vec4f(-alpha), q_{{ part }}, r_{{ part }});
    }
    squares += vec2f(dot(r_{{ part }}, r_{{ part }}), dot(b_{{ part }}, b_{{ part }}));
{% endfor %}
    workgroupBarrier();
    shares[thread] = squares;
    workgroupBarrier();
    let norms = total(batch);
    bad = bad || !is_finite(norms.x);
    if (step == 0) {
      // Below the last, products of residuals underflow.
        enough = max(max(norms.x * {{ tolerances.residual }}, norms.y * {{ tolerances.bias }}), 1e-30);
    }
    let beta = norms.x / rho;
    if (step == 0 || !done) {
{% for part in owned %}
      p_{{ part }} = select(fma(vec4f(beta), p_{{ part }}, r_{{ part }}), r_{{ part }}, step == 0);
{% endfor %}
    }
    rho = norms.x;
    done = done || norms.x <= enough;
  }

  var along_x = vec2f();
{% for part in owned %}
  along_x += vec2f({% if biases %}dot(s_{{ part }}, x_{{ part }}){% else %}0.0{% endif %}, dot(b_{{ part }} + r_{{ part }}, x_{{ part }}));
{% endfor %}
  workgroupBarrier();
  shares[thread] = along_x;
  workgroupBarrier();
  if (exists && lane == 0) {
    let told = total(batch);
{% if biases %}
    bias[row] = select(0.0, (t - told.x) / weight, count > 0);
{% endif %}
    tell(row, select(0.0, -told.y{% if biases %} - t / weight * t{% endif %}, count > 0));
  }
  if (exists) {
{% for part in owned %}
    if (owns_{{ part }}) {
      bad = !write_quad(row, quad_{{ part }}, x_{{ part }}) || bad;
    }
{% endfor %}
    if (bad) {
      atomicMin(&status[0], row);
    }
  }
}
