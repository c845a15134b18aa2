// Template: its text is part of a function's body.
{%- comment -%}
Computes `factor`, by which theta_v of rating `e` is multiplied in a sum over ratings, from `product`:

| sum | product | factor |
|---|---|---|
| A p | theta_v^T p | w_v theta_v^T p |
| residual (`first`) | theta_v^T x | g_v - w_v theta_v^T x |

With `first`, also adds g_v to `rated` and g_v theta_v^T x to `along`. `one` is 0 for a rating beyond the
part's last one, else 1.

|                  | explicit | implicit |
|---|---|---|
| weight w_v       | 1        | alpha abs(r_v) |
| right side g_v   | r_v      | base + alpha r_v if r_v > 0, otherwise 0 |
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
