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
