// Template: it stands for code of a function's body.
{%- comment -%}
The factor of theta_v of rating `e` in A p, from its product with p: w_v theta_v^T p. With `first` the factor
in the residual, g_v - w_v theta_v^T x; it also adds g_v to `rated` and g_v theta_v^T x to `along`. For w_v
and g_v see cg/tile-product.wgsl. `one` is 0 for a rating beyond the part's last one, else 1.
{%- endcomment %}
{%- if implicit %}
      let weight_v = params.alpha * abs(rating_{{ e }});
{%- else %}
      let weight_v = 1.0;
{%- endif %}
{%- if first %}
{%- if implicit %}
      let goal = one * select(0.0, params.base + params.alpha * rating_{{ e }}, rating_{{ e }} > 0.0);
{%- else %}
      let goal = one * rating_{{ e }};
{%- endif %}
      rated += goal;
      along = fma(goal, product, along);
      let factor = fma(-one * weight_v, product, goal);
{%- else %}
      let factor = one * weight_v * product;
{%- endif -%}
