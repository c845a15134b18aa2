{%- comment -%} The first DEPTH bins of a row whose ratings the ring holds already, on their way into registers. {%- endcomment -%}
{%- for set in sets %}
  { let slot = {{ set }}u; {% render 'parts/tensor-gather', set: set, passes: passes, RATING_ROW: RATING_ROW %} }
{%- endfor %}
