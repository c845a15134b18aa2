// Template: vectors are in registers, and loops over them are written out.
{%- comment -%}
Starts conjugate gradients of a row. Its LANES threads have in registers x, r = sum of (r_v - theta_v^T x)
theta_v and, with biases, s = sum of theta_v; `rated` is the sum of r_v, `along` the sum of r_v theta_v^T x.
Makes r the residual and p the first direction. Sets `rho` = |r|^2 (0 once the steps have ended), `enough`,
the rho at which they end, and `objective` = x^T A x - 2 b^T x.
With biases the row's bias is eliminated: A - s s^T / weight, b - s t / weight, and the objective less t^2 /
weight.
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
    // x^T b bounds |b| from below. The residual of x = 0 is b.
    let square_of_b = select(rho, product / squares * product, squares > 0.0);
    // This minimum keeps products of residuals from underflowing.
    enough = max(max(rho * {{ tolerances.residual }}, square_of_b * {{ tolerances.bias }}), 1e-30);
    let ended = rho <= enough;
    rho = select(rho, 0.0, ended);
{%- for i in owned %}
    p_{{ i }} = select(r_{{ i }}, vec4f(), ended);
{%- endfor %}
  }
