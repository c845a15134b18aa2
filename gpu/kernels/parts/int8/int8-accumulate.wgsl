{%- comment -%}
Sums A of the ratings [first, end) into the accumulators, from factors in 8 bits. The rings hold the ratings of the first two bins, `coming` those
of the third; with biases t_part gets this thread's part of t, where the ratings have a tile row. While a bin is multiplied, the next one's rows
of theta are loaded; with AHEAD the first bin is staged.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<i32, 16, 16>(0);
{%- endfor %}
{%- unless AHEAD %}
{%- if BIASES %}
    var t_part = 0.0;
{%- endif %}
    {
      let slot = 0u;
      {% render 'parts/int8-gather' %}
    }
    {% render 'parts/int8-stage', bin: '0u', RATING_ROW: RATING_ROW, BIASES: BIASES %}
{%- endunless %}
    var bin = 0u;
    for (var at = first; at < end; at += BIN) {
{%- if BIASES %}
      // Its column's bias arrives while a bin is multiplied.
      let arrived = coming;
      var arrived_bias = 0.0;
      if (thread < BIN) { arrived_bias = bias_of(arrived.x); }
{%- else %}
      if (thread < BIN) {
        put_column(bin + 2u, thread, coming.x);
        put_digits(bin + 2u, thread, coming, 0.0);
      }
{%- endif %}
      if (at + BIN < end) {
        let slot = (bin + 1u) & 3u;
        {% render 'parts/int8-gather' %}
        if (thread < BIN) { coming = rating_at(at + 3u * BIN + thread, end); }
      }
      workgroupBarrier();
      let held = min(BIN, end - at);
{%- for deal in deals %}
      {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
        {% if step > 0 %}if (held > {{ step }}u * 32u) {% endif %}{
{%- for tile in deal.lefts %}
          let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>, row_major>(&staged, {{ tile }}u * TILE_VECTORS + {{ step }}u * 2u, ROW_VECTORS);
{%- endfor %}
{%- for tile in deal.rights %}
          let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<i8, 16, 32>, col_major>(&staged, {{ tile }}u * TILE_VECTORS + {{ step }}u * 2u, ROW_VECTORS);
{%- endfor %}
{%- for tile in deal.tiles %}
          sum_{{ tile.accumulator }} = subgroupMatrixMultiplyAccumulate(left_{{ tile.row }}, right_{{ tile.column }}, sum_{{ tile.accumulator }});
{%- endfor %}
        }
{%- endfor %}
      }
{%- endfor %}
{%- if BIASES %}
      if (thread < BIN) {
        put_column(bin + 2u, thread, arrived.x);
        put_digits(bin + 2u, thread, arrived, arrived_bias);
      }
{%- endif %}
      workgroupBarrier();
      bin++;
      if (at + BIN < end) {
        {% render 'parts/int8-stage', bin: 'bin', RATING_ROW: RATING_ROW, BIASES: BIASES %}
      }
    }
