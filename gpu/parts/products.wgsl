#part unpacked
// Template: only float16 needs it.
{%- comment -%}
The quad of two words of float16 numbers.
{%- endcomment -%}
{% if half -%}
fn unpacked(packed: vec2u) -> vec4f {
  return vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y));
}

{% endif -%}

#part piece-sums
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
A thread's features of p, and its sums of theta_v's features. Needs lane and part.
{%- endcomment %}
{%- for piece in pieces %}
  let piece_{{ piece.at }} = {% if piece.guarded %}min(lane + {{ piece.first }}, PIECES - 1){% else %}lane + {{ piece.first }}{% endif %};
{%- for vector in piece.vectors %}
  {% if piece.guarded %}var{% else %}let{% endif %} p_{{ vector.number }} = vectors[part.x * QUADS + piece_{{ piece.at }} * {{ piece.vectors.size }} + {{ vector.part }}];
{%- if piece.guarded %}
  if (lane + {{ piece.first }} >= PIECES) { p_{{ vector.number }} = vec4f(); }
{%- endif %}
  var q_{{ vector.number }} = vec4f();
{%- if sums_rows %}
  var s_{{ vector.number }} = vec4f();
{%- endif %}
{%- endfor %}
{%- endfor -%}

#part piece-product
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
A thread's share of theta_v^T p of rating `e` of those at a time.
{%- endcomment -%}
{% for piece in pieces %}{% for vector in piece.vectors %}dot({{ vector.open }}theta_{{ e }}_{{ piece.at }}{{ vector.close }}, p_{{ vector.number }}){% unless forloop.last %} + {% endunless %}{% endfor %}{% unless forloop.last %} + {% endunless %}{% endfor -%}

#part rating-factor
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

#part add-pieces
// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Adds theta_v of rating `e`, times `weight`, to a thread's sums; and theta_v itself, if `one` is 1.
{%- endcomment %}
{%- for piece in pieces %}
{%- for vector in piece.vectors %}
      q_{{ vector.number }} = fma(
        vec4f({{ weight }}),
        {{ vector.open }}theta_{{ e }}_{{ piece.at }}{{ vector.close }},
        q_{{ vector.number }}
      );
{%- if sums_rows %}
      s_{{ vector.number }} = fma(
        vec4f(one),
        {{ vector.open }}theta_{{ e }}_{{ piece.at }}{{ vector.close }},
        s_{{ vector.number }}
      );
{%- endif %}
{%- endfor %}
{%- endfor -%}
