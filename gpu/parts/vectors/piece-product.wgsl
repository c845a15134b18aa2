// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
A thread's share of theta_v^T p of rating `e` of those at a time.
{%- endcomment -%}
{% for piece in pieces %}{% for vector in piece.vectors %}dot({{ vector.open }}theta_{{ e }}_{{ piece.at }}{{ vector.close }}, p_{{ vector.number }}){% unless forloop.last %} + {% endunless %}{% endfor %}{% unless forloop.last %} + {% endunless %}{% endfor -%}
