// Template: the including shader passes the positions in memory.
{%- comment -%}
Reads this thread's elements of b and, with biases, of s from the sums that tensor cores stored in workgroup
memory: products of theta with the ratings, and with ones. They are in the tiles at {{ at }}, from line {{
line }} on.
{%- endcomment -%}
{%- if INT8 -%}
{ let digits = ({{ at }}u + own_tile) * 80u + {{ line | times: 5 }}u + own_line / 4u;
      b = fma(256.0, number_of(staged[digits])[own_line & 3u], number_of(staged[digits + 5u])[own_line & 3u]);
{%- if BIASES %}
      s = number_of(staged[digits + 10u])[own_line & 3u];
{%- endif %} }
{%- else -%}
b = bitcast<f32>(
  staged[({{ at }}u + own_tile) * 80u + {{ line | times: 5 }}u + own_line / 4u][own_line & 3u]
);
{%- if BIASES %}
    s = bitcast<f32>(
      staged[({{ at }}u + own_tile) * 80u + {{ line | times: 5 | plus: 5 }}u + own_line / 4u][own_line & 3u]
    );
{%- endif %}
{%- endif %}
