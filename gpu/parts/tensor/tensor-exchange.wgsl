// Template: loops are unrolled, so that a thread's elements of A stay in registers.
{%- comment -%}
Moves A from the accumulators of the tensor cores through workgroup memory to the threads' registers: a_m_q is
four columns of tile m of row q of this thread. Also b and, with biases, s = sum of theta_v and t_part (this
thread's part of t = sum of r_v). With INT8 the tiles are integers, and ratings have two 8-bit digits.
{%- endcomment %}
{%- for phase in phases %}
{%- unless forloop.first %}
    workgroupBarrier();
{%- endunless %}
{%- for store in phase.stores %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ store.subgroup }}u) {
{%- for tile in store.tiles %}
      subgroupMatrixStore<row_major>(&staged, {{ tile.place }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- endfor %}
    }
{%- endfor %}
    workgroupBarrier();
{%- for line in phase.rows %}
{%- if line.row == TILES %}
    {% render 'parts/tensor-line', at: line.place, line: 0, BIASES: BIASES, INT8: INT8 %}
{%- else %}
{%- assign last = TILES | minus: 1 %}
{%- if line.row == last and RATING_ROW == false %}
    {% render 'parts/tensor-line', at: line.place, line: 8, BIASES: BIASES, INT8: INT8 %}
{%- if BIASES %}
    // The products of ratings and ones are t.
    t_part = {% if INT8 %}select(0.0, b, thread == PADDED - 6u){% else %}select(0.0, s, thread == PADDED - 8u){% endif %};
{%- endif %}
{%- endif %}
    if (tile_row == {{ line.row }}u) {
      let origin = {{ line.place }}u * 80u + quad_row * 20u + quad_lane;
{%- for m in (0..line.row) %}
{%- for q in (0..3) %}
      a_{{ m }}_{{ q }} = keep(number_of(staged[origin + {{ m }}u * 80u + {{ q }}u * 5u]), inverse);
{%- endfor %}
{%- endfor %}
    }
{%- if line.row > 0 %}
    else if (tile_row < {{ line.row }}u) {
      // The upper triangle is the lower one's transpose.
      let origin = ({{ line.place }}u + tile_row) * 80u + quad_lane * 20u + quad_row;
      let e0 = number_of(staged[origin]);
      let e1 = number_of(staged[origin + 5u]);
      let e2 = number_of(staged[origin + 10u]);
      let e3 = number_of(staged[origin + 15u]);
      a_{{ line.row }}_0 = keep(vec4f(e0.x, e1.x, e2.x, e3.x), inverse);
      a_{{ line.row }}_1 = keep(vec4f(e0.y, e1.y, e2.y, e3.y), inverse);
      a_{{ line.row }}_2 = keep(vec4f(e0.z, e1.z, e2.z, e3.z), inverse);
      a_{{ line.row }}_3 = keep(vec4f(e0.w, e1.w, e2.w, e3.w), inverse);
    }
{%- endif %}
{%- endif %}
{%- endfor %}
{%- endfor %}
