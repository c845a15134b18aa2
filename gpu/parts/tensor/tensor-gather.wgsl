// Template: loops are unrolled, so that the loaded features stay in registers.
{%- comment -%}
Loads this thread's part of the rows of theta of one bin, whose ratings are in place `slot` of the ring, into
next_0 and following.
{%- endcomment -%}
{%- for pass in passes %}
{ let entry = ring[(slot) * BIN + gather_row + {{ pass }}u * GATHER_ROWS];
{%- if IMPLICIT %}
  rated_{{ pass }} = entry.y;
{%- endif %}
  if (chunk < FACTOR_CHUNKS) { next_{{ pass }} = fixed[entry.x * CHUNKS + chunk]; }
{%- unless RATING_ROW %}
  else if (chunk == FACTOR_CHUNKS) { next_{{ pass }} = vec4<u32>(entry.y, 0u, 0u, 0u); }
{%- endunless %} }
{%- endfor %}
{%- if CENTRE %}
if (thread < BIN) { next_bias = bias_of(ring[(slot) * BIN + thread].x); }
{%- endif %}
