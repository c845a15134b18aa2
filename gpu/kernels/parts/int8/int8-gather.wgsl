{%- comment -%} Loads this thread's 16 features of its four ratings of bin `ahead` into next_0 to next_3. {%- endcomment -%}
{ let four = staged[columns_at(ahead, group)];
  if (chunk < TILES) {
{%- for r in (0..3) %}
    next_{{ r }} = fixed[four[{{ r }}] * ROW_PIECES + chunk];
{%- endfor %}
  } }
