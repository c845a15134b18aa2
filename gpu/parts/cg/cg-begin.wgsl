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
