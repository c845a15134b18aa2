// Template: each tile of A is a variable, and the host decides which subgroup sums it.
{%- comment -%}
Computes A, the sum of theta_v theta_v^T over the ratings [first, end) of a row, on tensor cores, from factors
in float16, in the accumulators sum_*. It takes BIN ratings at a time, a bin. The ratings themselves are a
further feature of theta, so the same products also give b.

While a bin is multiplied, the rows of theta of the next bin are loaded to next_*. Ratings are loaded earlier
still: before this code, `ring` must contain the ratings of the first two bins, and `coming` the ratings of
the third. With AHEAD the including shader has also loaded the rows of theta of the first bin.

With biases and an extra tile row for ratings (RATING_ROW), t_part becomes this thread's part of the sum t of
the ratings. next_* are declared here if A is moved back to the tensor cores (HALF_A), as in int8-accumulate.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<f32, 16, 16>(0.0);
{%- endfor %}
{%- if GRAM %}
    // Sums start at the Gram matrix, a term of A that is the same for all rows.
{%- for deal in deals %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for tile in deal.tiles %}
{%- if tile.row < TILES %}
      sum_{{ tile.accumulator }} = subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>, row_major>(
        &gram,
        {{ tile.row }}u * PADDED * 4u + {{ tile.column }}u * 4u,
        PADDED / 4u
      );
{%- endif %}
{%- endfor %}
    }
{%- endfor %}
{%- endif %}
{%- if BIASES %}
    var t_part = 0.0;
{%- endif %}
{%- unless AHEAD %}
{%- if HALF_A %}
{%- for pass in passes %}
    var next_{{ pass }} = vec4<u32>();
{%- endfor %}
{%- if CENTRE %}
    var next_bias = 0.0;
{%- endif %}
{%- endif %}
    {
      let slot = 0u;
      #import parts/tensor-gather
    }
{%- endunless %}
    var bin = 0u;
    for (var at = first; at < end; at += BIN) {
      if (chunk < CHUNKS) {
{%- for pass in passes %}
{%- if IMPLICIT %}
        staged[(gather_row + {{ pass }}u * GATHER_ROWS) * STRIDE + chunk] = {% if RATING_ROW %}weighted(next_{{ pass }}, rated_{{ pass }}){% else %}select(weighted(next_{{ pass }}, rated_{{ pass }}), vec4<u32>(rated_{{ pass }} & 0xffffu, 0u, 0u, 0u), chunk == FACTOR_CHUNKS){% endif %};
{%- else %}
        staged[(gather_row + {{ pass }}u * GATHER_ROWS) * STRIDE + chunk] = next_{{ pass }};
{%- endif %}
{%- endfor %}
      }
{%- if CENTRE %}
      if (thread < BIN) {
        let rated = centred(ring[(bin & 3u) * BIN + thread], next_bias);
        staged[thread * STRIDE + FACTOR_CHUNKS] = vec4<u32>(rated, 0u, 0u, 0u);
        t_part += unpack2x16float(rated).x;
      }
{%- elsif RATING_ROW %}
      if (thread < BIN) {
        let rated = ring[(bin & 3u) * BIN + thread].y;
        staged[thread * STRIDE + CHUNKS] = vec4<u32>(rated{% if IMPLICIT %} & 0xffffu{% endif %}, 0u, 0u, 0u);
      }
{%- endif %}
      if (thread < BIN) { ring[((bin + 2u) & 3u) * BIN + thread] = entry_of(coming); }
      if (at + BIN < end) {
        let slot = (bin + 1u) & 3u;
        #import parts/tensor-gather
        if (thread < BIN) { coming = rating_at(at + 3u * BIN + thread, end); }
      }
      workgroupBarrier();
      let held = min(BIN, end - at);
{%- for deal in deals %}
      {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
        {% if step > 0 %}if (held > {{ step }}u * 16u) {% endif %}{
{%- for tile in deal.lefts %}
          let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, col_major>(
            &staged,
            {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u,
            STRIDE
          );
{%- endfor %}
{%- for tile in deal.rights %}
          let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(
            &staged,
            {{ step }}u * 16u * STRIDE + {{ tile }}u * 2u,
            STRIDE
          );
{%- endfor %}
{%- for tile in deal.tiles %}
          sum_{{ tile.accumulator }} = subgroupMatrixMultiplyAccumulate(
            left_{{ tile.row }},
            right_{{ tile.column }},
            sum_{{ tile.accumulator }}
          );
{%- endfor %}
        }
{%- endfor %}
      }
{%- endfor %}
      workgroupBarrier();
      bin++;
    }
