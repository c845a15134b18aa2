// Template: a thread keeps a block of A in registers, so loops over its elements must be unrolled.
{%- comment -%}
Reads the thread's block of A, in block row `down` and block column `across`, as the sum of the row's slots.
Elements beyond the rank are 0.
{%- endcomment %}
  // Column c of the block, rows 0 to 3 and 4 to 7: a_c_0 and a_c_1.
{% for c in columns %}
  var a_{{ c.at }}_0 = vec4f();
  var a_{{ c.at }}_1 = vec4f();
{% endfor %}
  let tile = vec2u(down, across) / 2;
  let first = base + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + down % 2 * 32 + across % 2 * 2;
  for (var slot = 0u; slot < slot_count; slot++) {
    let at = first + slot * SLOT_QUADS;
{% for quad in (0..1) %}
    {
{% for r in columns %}
      let row_{{ r.at }} = slots[at + {{ r.at | times: 4 | plus: quad }}];
{% endfor %}
{% for i in (0..3) %}
{% assign c = quad | times: 4 | plus: i %}
      a_{{ c }}_0 += vec4f(row_0[{{ i }}], row_1[{{ i }}], row_2[{{ i }}], row_3[{{ i }}]);
      a_{{ c }}_1 += vec4f(row_4[{{ i }}], row_5[{{ i }}], row_6[{{ i }}], row_7[{{ i }}]);
{% endfor %}
    }
{% endfor %}
  }
{% if outside.size > 0 %}
  // Slots are undefined beyond the rank. Columns beyond it are right of the diagonal and never read.
  if (down == SIDE - 1) {
{% for c in columns %}
{% for r in outside %}
    a_{{ c.at }}_{{ r.name }} = 0.0;
{% endfor %}
{% endfor %}
  }
{% endif %}
