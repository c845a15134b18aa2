// Template: loops are unrolled, so that x, r, p and q stay in registers.
// LANES threads share a row. Between phases other kernels multiply A by `direction`.
//
//   gather   copies the previous x to `direction`, for the product A x
//   begin    computes the residual from the sums over ratings; it is the first search direction
//   step     takes one step along the direction p, given A p
//
// The products are in `given`. For listed rows these are slots, one for each part of a row, which are summed
// here. For consecutive rows they are A p of whole rows, and the sums for `begin` are already in `gradients`.
// In `gather`, `given` has the previous x.
{% if multiplies %}
var<workgroup> vector: array<vec4f, ROWS * QUADS>;
{% endif %}
{% render 'parts/row-total' %}
{% render 'parts/finite' %}
{% render 'parts/row-shift' %}

// Four numbers of a row of `given`, summed over its slots (one, if rows are consecutive).
fn given_sum(entry: vec4u, quad: u32) -> vec4f {
  var sum = given[entry.y * GIVEN_QUADS + quad];
  for (var slot = 1u; slot < entry.w; slot++) {
    sum += given[(entry.y + slot) * GIVEN_QUADS + quad];
  }
  return sum;
}

{% if multiplies -%}
// Four numbers of G v, where v is a row's vector in workgroup memory. The Gram matrix G is stored in full.
fn gram_product(batch: u32, quad: u32) -> vec4f {
  var sum = vec4f();
  for (var k = 0u; k < QUADS; k++) {
    let v = vector[batch * QUADS + k];
    sum = fma(vec4f(v.x), gram[4 * k * QUADS + quad], sum);
    sum = fma(vec4f(v.y), gram[(4 * k + 1) * QUADS + quad], sum);
    sum = fma(vec4f(v.z), gram[(4 * k + 2) * QUADS + quad], sum);
    sum = fma(vec4f(v.w), gram[(4 * k + 3) * QUADS + quad], sum);
  }
  return sum;
}

{% endif -%}
#import parts/main-by-id
{
  {% render 'parts/vector-row', listed: listed, owned: owned %}
{%- if phase == 'gather' %}
{%- for i in owned %}
  if (exists && quad_{{ i }} < QUADS) {
    let x = given[row * QUADS + quad_{{ i }}];
    factors[row * QUADS + quad_{{ i }}] = x;
    direction[own * QUADS + quad_{{ i }}] = x;
  }
{%- endfor %}
{%- else %}
  let shift = shift_of(row);
{%- if biases %}
  let weight = weight_of(row, n);
{%- endif %}
{%- if phase == 'begin' and listed %}
  let numbers = given_sum(entry, QUADS);
{%- else %}
  let numbers = gradients[base + QUADS];
{%- endif %}
{%- for i in owned %}
  var x_{{ i }} = vec4f();
  var r_{{ i }} = vec4f();
  var p_{{ i }} = vec4f();
  var q_{{ i }} = vec4f();
  var s_{{ i }} = vec4f();
  if (quad_{{ i }} < QUADS) {
    x_{{ i }} = factors[row * QUADS + quad_{{ i }}];
{%- if phase == 'begin' and listed %}
    r_{{ i }} = given_sum(entry, quad_{{ i }});
{%- if biases %}
    s_{{ i }} = given_sum(entry, QUADS + 1 + quad_{{ i }});
{%- endif %}
{%- else %}
    r_{{ i }} = gradients[base + quad_{{ i }}];
{%- if biases %}
    s_{{ i }} = gradients[base + QUADS + 4 + quad_{{ i }}];
{%- endif %}
{%- endif %}
{%- if phase == 'step' %}
    p_{{ i }} = direction[own * QUADS + quad_{{ i }}];
    q_{{ i }} = given_sum(entry, quad_{{ i }});
{%- endif %}
{%- if multiplies %}
    vector[batch * QUADS + quad_{{ i }}] = {% if phase == 'begin' %}x{% else %}p{% endif %}_{{ i }};
{%- endif %}
  }
{%- endfor %}
{%- if implicit %}
{%- if multiplies %}
  workgroupBarrier();
{%- endif %}
{%- for i in owned %}
  if (quad_{{ i }} < QUADS) {
{%- if multiplies %}
    let product = gram_product(batch, quad_{{ i }});
{%- else %}
    let product = gram[known * QUADS + quad_{{ i }}];
{%- endif %}
    {% if phase == 'begin' %}r_{{ i }} -= product;{% else %}q_{{ i }} += product;{% endif %}
  }
{%- endfor %}
{%- endif %}
{%- if phase == 'begin' %}
  let rated = numbers.y;
  let along = numbers.z;
  var rho = 0.0;
  var enough = 0.0;
  var objective = 0.0;
  {% render 'parts/cg-begin', owned: owned, biases: biases, tolerances: tolerances %}
{%- else %}
  let ends = gradients[base + QUADS + 1];
  var rho = numbers.w;
  let enough = ends.x;
  var objective = ends.y;
  {% render 'parts/cg-advance', owned: owned, biases: biases %}
{%- endif %}
  if (!exists) {
    return;
  }
{%- for i in owned %}
  if (quad_{{ i }} < QUADS) {
    gradients[base + quad_{{ i }}] = r_{{ i }};
    direction[own * QUADS + quad_{{ i }}] = p_{{ i }};
{%- if phase == 'step' %}
    factors[row * QUADS + quad_{{ i }}] = x_{{ i }};
{%- elsif listed and biases %}
    gradients[base + QUADS + 4 + quad_{{ i }}] = s_{{ i }};
{%- endif %}
  }
{%- endfor %}
  if (lane == 0) {
    gradients[base + QUADS] = vec4f(f32(n), numbers.yz, rho);
    gradients[base + QUADS + 1] = vec4f(enough, objective, 0.0, 0.0);
  }
{%- endif %}
}
