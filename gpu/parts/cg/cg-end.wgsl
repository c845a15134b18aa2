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
