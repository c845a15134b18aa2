{%- comment -%}
Conjugate gradients on A in registers (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha a_p). It uses x, b, shift and is_feature;
one reduction a step serves alpha and beta, since |r - alpha a_p|^2 = alpha^2 |a_p|^2 - |r|^2 when alpha = |r|^2 / p.a_p.
With biases it uses s, t_part and weight too, runs on A - s s^T / weight with the right side b - s t / weight, and leaves the row's bias in beta_row. Each step sums s^T p
itself: carried along like |r|^2 it loses its digits as p gets small, and s s^T / weight is far larger than the rest.
Where A is S A S of the A in registers, `scaled` multiplies by this thread's number of S.
{%- endcomment %}
    var product = 0.0;
    put_vector(0u, thread, x{{ scaled }});
{%- if BIASES %}
    let s_own = s{{ scaled }};
    var begun = subgroupAdd(vec2f(s_own * x, t_part));
{%- if SUBGROUPS > 1 %}
    if ((thread & 31u) == 0u) { sums[subgroup] = vec4f(begun, 0.0, 0.0); }
{%- endif %}
{%- endif %}
    workgroupBarrier();
{%- if BIASES and SUBGROUPS > 1 %}
    begun = sums[0].xy;
{%- for other in other_subgroups %}
    begun += sums[{{ other }}u].xy;
{%- endfor %}
{%- endif %}
    {% render 'parts/register-product', from: '0u', tile_numbers: tile_numbers %}
    var r = select(0.0, b - fma(shift, x, product{{ scaled }}), is_feature);
{%- if BIASES %}
    var s_x = begun.x;
    r = fma(s_own, (s_x - begun.y) / weight, r);
{%- endif %}
    var p = r;
    // Below this part of its first square the residual is rounding error, and further steps would go in random directions.
    var enough = 0.0;
    {{ between }}
    for (var step = 0u; step < STEPS; step++) {
      let which = (step + 1u) & 1u;
      put_vector(which, thread, p{{ scaled }});
{%- if BIASES %}
      var s_p = subgroupAdd(s_own * p);
{%- if SUBGROUPS > 1 %}
      if ((thread & 31u) == 0u) { along[which * SUBGROUPS + subgroup] = s_p; }
{%- endif %}
{%- endif %}
      workgroupBarrier();
{%- if BIASES and SUBGROUPS > 1 %}
      s_p = along[which * SUBGROUPS];
{%- for other in other_subgroups %}
      s_p += along[which * SUBGROUPS + {{ other }}u];
{%- endfor %}
{%- endif %}
      let origin = which * TILES * 4u;
      {% render 'parts/register-product', from: 'origin', tile_numbers: tile_numbers %}
      let ap = select(0.0, fma(shift, p, product{{ scaled }}){% if BIASES %} - s_own * (s_p / weight){% endif %}, is_feature);
      let mine = vec3f(r * r, p * ap, ap * ap);
{%- if SUBGROUPS > 1 %}
      let part = subgroupAdd(mine);
      if ((thread & 31u) == 0u) { sums[which * SUBGROUPS + subgroup] = vec4f(part, 0.0); }
      workgroupBarrier();
      var total = sums[which * SUBGROUPS];
{%- for other in other_subgroups %}
      total += sums[which * SUBGROUPS + {{ other }}u];
{%- endfor %}
{%- else %}
      let total = subgroupAdd(mine);
{%- endif %}
      if (step == 0u) { enough = max(total.x * RESIDUAL_TOLERANCE, 1e-30); }
      let alpha = select(0.0, total.x / total.y, total.x > enough && total.y > 0.0);
      x = fma(alpha, p, x);
      r = fma(-alpha, ap, r);
      let left = max(alpha * alpha * total.z - total.x, 0.0);
      let beta = select(0.0, left / total.x, total.x > enough);
      p = fma(beta, p, r);
{%- if BIASES %}
      s_x = fma(alpha, s_p, s_x);
{%- endif %}
    }
{%- if BIASES %}
    let beta_row = (begun.y - s_x) / weight;
{%- endif %}
