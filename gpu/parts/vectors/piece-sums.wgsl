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
