// Template: the including shader names the variables to fill.
{%- comment -%}
Loads rows of theta of the ratings of bin `ahead`, 16 features of four ratings per thread, into next_S_0 to
next_S_3 for S = `set`.
{%- endcomment -%}
{ let four = staged[columns_at(ahead, group)];
  if (chunk < TILES) {
{%- for r in (0..3) %}
    next_{{ set }}_{{ r }} = fixed[four[{{ r }}] * ROW_PIECES + chunk];
{%- endfor %}
  } }
