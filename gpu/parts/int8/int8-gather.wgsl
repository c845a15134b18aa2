// Template: names of variables are made from the set that is gathered.
{%- comment -%}
Loads rows of theta of the ratings of bin `ahead`: 16 features of four ratings per thread, into next_{{ set
}}_0 to next_{{ set }}_3.
{%- endcomment -%}
{ let four = staged[columns_at(ahead, group)];
  if (chunk < TILES) {
{%- for r in (0..3) %}
    next_{{ set }}_{{ r }} = fixed[four[{{ r }}] * ROW_PIECES + chunk];
{%- endfor %}
  } }
