// Template: each tile of A is a variable, and the host decides which subgroup sums it.
{%- comment -%}
Computes A, the sum of theta_v theta_v^T over the ratings [first, end) of a row, on tensor cores, from factors
in 8 bits, in the accumulators sum_*. It takes BIN ratings at a time, a bin. The ratings themselves are
further features of theta, so the same products also give b.

While a bin is multiplied, the rows of theta of the next bin are loaded to next_0_*. With two `sets`, rows are
loaded two bins in advance, alternately to next_0_* and next_1_*. Ratings are loaded earlier still: before
this code, the rings in workgroup memory must contain the ratings of the first two bins, and `coming` the
ratings of the third.

With biases and an extra tile row for ratings (RATING_ROW), t_part becomes this thread's part of the sum t of
the ratings.

next_* are declared here if A is moved back to the tensor cores (HALF_A): their registers are then free for
another workgroup. In other variants that is slower, and the including shader declares them.
{%- endcomment %}
{%- for number in accumulators %}
    var sum_{{ number }} = subgroup_matrix_result<i32, 16, 16>(0);
{%- endfor %}
{%- if BIASES %}
    var t_part = 0.0;
{%- endif %}
{%- if HALF_A %}
{%- for set in sets %}
{%- for r in (0..3) %}
    var next_{{ set }}_{{ r }} = vec4<u32>();
{%- endfor %}
{%- endfor %}
{%- endif %}
    {
      let ahead = 0u;
      {% render 'parts/int8-gather', set: 0 %}
    }
{%- if sets.size == 2 %}
    if (first + BIN < end) {
      let ahead = 1u;
      {% render 'parts/int8-gather', set: 1 %}
    }
{%- endif %}
    var bin = 0u;
    for (var turn = first; turn < end; turn += {{ sets.size }}u * BIN) {
{%- for set in sets %}
    {% if set == 1 %}if (turn + BIN < end) {% endif %}{
      let at = turn{% if set == 1 %} + BIN{% endif %};
      if (chunk < TILES) {
{%- unless RATING_ROW %}
        // The ratings are stored in padding of theta, as features 8 to 10 of the last tile.
        if (chunk == TILES - 1u) {
          let ratings = staged[rated_at(bin, group)];
{%- for r in (0..3) %}
          next_{{ set }}_{{ r }}.z = ratings[{{ r }}];
{%- endfor %}
        }
{%- endunless %}
        // Transposes blocks of four ratings by four features, one byte each.
        let even_low = (next_{{ set }}_0 & BYTES) | ((next_{{ set }}_1 & BYTES) << EIGHT);
        let odd_low = ((next_{{ set }}_0 >> EIGHT) & BYTES) | (next_{{ set }}_1 & ~BYTES);
        let even_high = (next_{{ set }}_2 & BYTES) | ((next_{{ set }}_3 & BYTES) << EIGHT);
        let odd_high = ((next_{{ set }}_2 >> EIGHT) & BYTES) | (next_{{ set }}_3 & ~BYTES);
        let line_0 = (even_low & WORDS) | (even_high << SIXTEEN);
        let line_1 = (odd_low & WORDS) | (odd_high << SIXTEEN);
        let line_2 = (even_low >> SIXTEEN) | (even_high & ~WORDS);
        let line_3 = (odd_low >> SIXTEEN) | (odd_high & ~WORDS);
        let place = FRONT + chunk * TILE_VECTORS + group / 4u;
{%- for quad in (0..3) %}
{%- for line in (0..3) %}
        staged[place + {{ quad | times: 4 | plus: line }}u * ROW_VECTORS][group & 3u] = line_{{ line }}[{{ quad }}];
{%- endfor %}
{%- endfor %}
      }
{%- if RATING_ROW %}
      // The ratings have an extra tile row. Only its first lines are stored, in the memory before the first
      // tile. Its other lines overlap that tile, and their products are ignored.
      if (thread < BIN / 4u) {
        let ratings = staged[rated_at(bin, thread)];
        let place = thread / 4u;
        staged[place][thread & 3u] = bytes_of(ratings, 0u);
        staged[place + ROW_VECTORS][thread & 3u] = bytes_of(ratings, 8u);
{%- if BIASES %}
        staged[place + 2u * ROW_VECTORS][thread & 3u] = bytes_of(ratings, 16u);
        t_part += sum_of(ratings);
{%- endif %}
      }
{%- endif %}
{%- if BIASES %}
      // The bias of the new rating's column is loaded while the bin is multiplied.
      let arrived = coming;
      var arrived_bias = 0.0;
      if (thread < BIN) {
        put_column(bin + 2u, thread, arrived.x);
        arrived_bias = bias_of(arrived.x);
      }
{%- else %}
      if (thread < BIN) { put_rating(bin + 2u, thread, coming); }
{%- endif %}
      if (at + BIN < end) {
{%- if sets.size == 1 %}
        let ahead = bin + 1u;
        {% render 'parts/int8-gather', set: 0 %}
{%- endif %}
        if (thread < BIN) { coming = rating_at(at + 3u * BIN + thread, end); }
      }
      workgroupBarrier();
{%- if sets.size == 2 %}
      if (at + 2u * BIN < end) {
        let ahead = bin + 2u;
        {% render 'parts/int8-gather', set: set %}
      }
{%- endif %}
      let held = min(BIN, end - at);
{%- for deal in deals %}
      {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for step in steps %}
        {% if step > 0 %}if (held > {{ step }}u * 32u) {% endif %}{
{%- for tile in deal.lefts %}
          let left_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>, row_major>(
            &staged,
            {% if tile < TILES %}FRONT + {{ tile }}u * TILE_VECTORS + {% endif %}{{ step }}u * 2u,
            ROW_VECTORS
          );
{%- endfor %}
{%- for tile in deal.rights %}
          let right_{{ tile }} = subgroupMatrixLoad<subgroup_matrix_right<i8, 16, 32>, col_major>(
            &staged,
            FRONT + {{ tile }}u * TILE_VECTORS + {{ step }}u * 2u,
            ROW_VECTORS
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
{%- if BIASES %}
      if (thread < BIN) { put_digits(bin + 2u, thread, arrived, arrived_bias); }
{%- endif %}
      workgroupBarrier();
      bin++;
    }
{%- endfor %}
    }
