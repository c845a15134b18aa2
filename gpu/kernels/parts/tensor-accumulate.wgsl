{%- comment -%}
Sums A of the ratings [first, end) into the accumulators. The ring holds the ratings of the first DEPTH + 1 bins, `coming` those
of the next, and next_s_* the gathered rows of the first DEPTH bins.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<f32, 16, 16>(0.0);
{%- endfor %}
    var bin = 0u;
    for (var round = first; round < end; round += DEPTH * BIN) {
{%- for set in sets %}
      {% if set > 0 %}if (round + {{ set }}u * BIN < end) {% endif %}{
        let at = round + {{ set }}u * BIN;
        if (chunk < CHUNKS) {
{%- for pass in passes %}
          staged[(gather_row + {{ pass }}u * GATHER_ROWS) * STRIDE + chunk] = next_{{ set }}_{{ pass }};
{%- endfor %}
        }
{%- if RATING_ROW %}
        if (thread < BIN) { staged[thread * STRIDE + CHUNKS] = vec4<u32>(ring[(bin & 3u) * BIN + thread].y, 0u, 0u, 0u); }
{%- endif %}
        if (thread < BIN) { ring[((bin + DEPTH + 1u) & 3u) * BIN + thread] = coming; }
        if (at + DEPTH * BIN < end) {
          let slot = (bin + DEPTH) & 3u;
          {% render 'parts/tensor-gather', set: set, passes: passes, RATING_ROW: RATING_ROW %}
          if (thread < BIN) { coming = rating_at(at + (DEPTH + 2u) * BIN + thread, end); }
        }
        workgroupBarrier();
{%- if TOUCH %}
        if (at + (DEPTH + 1u) * BIN < end) {
          let slot = (bin + DEPTH + 1u) & 3u;
          {% render 'parts/tensor-touch', touches: touches %}
        }
{%- endif %}
        let held = min(BIN, end - at);
{%- for deal in deals %}
        {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
          {% if step > 0 %}if (held > {{ step }}u * 16u) {% endif %}{
{%- for tile in deal.lefts %}
            let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, col_major>(&staged, {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u, STRIDE);
{%- endfor %}
{%- for tile in deal.rights %}
            let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&staged, {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u, STRIDE);
{%- endfor %}
{%- for tile in deal.tiles %}
            sum_{{ tile.accumulator }} = subgroupMatrixMultiplyAccumulate(left_{{ tile.row }}, right_{{ tile.column }}, sum_{{ tile.accumulator }});
{%- endfor %}
          }
{%- endfor %}
        }
{%- endfor %}
        workgroupBarrier();
        bin++;
      }
{%- endfor %}
    }
