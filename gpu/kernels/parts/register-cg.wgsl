{%- comment -%}
Conjugate gradients on A in registers (cuMF_ALS, Algorithm 1, with line 5 as r = r - alpha a_p). It uses x, b, shift and is_feature;
one reduction a step serves alpha and beta, since |r - alpha a_p|^2 = alpha^2 |a_p|^2 - |r|^2 when alpha = |r|^2 / p.a_p.
{%- endcomment %}
    var product = 0.0;
    put_vector(0u, thread, x);
    workgroupBarrier();
    {% render 'parts/register-product', from: '0u', tile_numbers: tile_numbers %}
    var r = select(0.0, b - fma(shift, x, product), is_feature);
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
      let ap = select(0.0, fma(shift, p, product), is_feature);
{%- if SUBGROUPS > 1 %}
      let part = subgroupAdd(vec3f(r * r, p * ap, ap * ap));
      if ((thread & 31u) == 0u) { sums[which * SUBGROUPS + subgroup] = vec4f(part, 0.0); }
      workgroupBarrier();
      var total = sums[which * SUBGROUPS];
{%- for other in other_subgroups %}
      total += sums[which * SUBGROUPS + {{ other }}u];
{%- endfor %}
{%- else %}
      let total = subgroupAdd(vec3f(r * r, p * ap, ap * ap));
{%- endif %}
      if (step == 0u) { enough = max(total.x * RESIDUAL_TOLERANCE, 1e-30); }
      let alpha = select(0.0, total.x / total.y, total.x > enough && total.y > 0.0);
      x = fma(alpha, p, x);
      r = fma(-alpha, ap, r);
      let left = max(alpha * alpha * total.z - total.x, 0.0);
      let beta = select(0.0, left / total.x, total.x > enough);
      p = fma(beta, p, r);
    }
