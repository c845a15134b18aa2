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
