{%- comment -%}
Conjugate gradients on A in registers (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha a_p). It uses x, b, shift and is_feature;
one reduction a step serves alpha and beta, since |r - alpha a_p|^2 = alpha^2 |a_p|^2 - |r|^2 when alpha = |r|^2 / p.a_p.
With biases it uses s, t_part and weight too, and runs on A - s s^T / weight with the right side b - s t / weight; the products of s
with x, r and p are carried along like |r|^2, since s^T (r - alpha a_p) = s^T r - alpha s^T a_p. It leaves the row's bias in beta_row.
{%- endcomment %}
    var product = 0.0;
    put_vector(0u, thread, x);
    workgroupBarrier();
    {% render 'parts/register-product', from: '0u', tile_numbers: tile_numbers %}
    var r = select(0.0, b - fma(shift, x, product), is_feature);
{%- if BIASES %}
    var begun = subgroupAdd(vec4f(s * x, s * r, s * s, t_part));
{%- if SUBGROUPS > 1 %}
    if ((thread & 31u) == 0u) { sums[subgroup] = begun; }
    workgroupBarrier();
    begun = sums[0];
{%- for other in other_subgroups %}
    begun += sums[{{ other }}u];
{%- endfor %}
{%- endif %}
    var s_x = begun.x;
    let from_bias = (s_x - begun.w) / weight;
    r = fma(s, from_bias, r);
    var s_r = fma(begun.z, from_bias, begun.y);
    var s_p = s_r;
{%- endif %}
    var p = r;
    // Below this part of its first square the residual is rounding error, and further steps would go in random directions.
    var enough = 0.0;
    {{ between }}
    for (var step = 0u; step < STEPS; step++) {
      let which = (step + 1u) & 1u;
      put_vector(which, thread, p);
      workgroupBarrier();
      let origin = which * TILES * 4u;
      {% render 'parts/register-product', from: 'origin', tile_numbers: tile_numbers %}
{%- if BIASES %}
      let ap = select(0.0, fma(shift, p, product) - s * (s_p / weight), is_feature);
      let mine = vec4f(r * r, p * ap, ap * ap, s * ap);
{%- else %}
      let ap = select(0.0, fma(shift, p, product), is_feature);
      let mine = vec3f(r * r, p * ap, ap * ap);
{%- endif %}
{%- if SUBGROUPS > 1 %}
      let part = subgroupAdd(mine);
      if ((thread & 31u) == 0u) { sums[which * SUBGROUPS + subgroup] = {% if BIASES %}part{% else %}vec4f(part, 0.0){% endif %}; }
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
      s_r = fma(-alpha, total.w, s_r);
      s_p = fma(beta, s_p, s_r);
{%- endif %}
    }
{%- if BIASES %}
    let beta_row = (begun.w - s_x) / weight;
{%- endif %}
