// Template: each operand of the tensor cores is a variable of its own.
{%- comment -%}
Converts A, as summed on tensor cores, to A / n in float16, as the left operand of later products on tensor
cores; with biases, A / n - s s^T / (n weight). a_k_j is the operand for tile column j of the subgroup's k-th
tile row, which is tile row `subgroup` + k SUBGROUPS of A.

The summed tiles also contain b_e and, with biases, s_e and t: the elements e * 32 + lane of b and s, of which
all subgroups have a copy. With INT8 the tiles are integers, and ratings have two 8-bit digits.
{%- endcomment %}
{%- assign last = TILES | minus: 1 %}
{%- if RATING_ROW %}{% assign b_line = 0 %}{% else %}{% assign b_line = 8 %}{% endif %}
{%- for k in own_rows %}
{%- for j in tile_numbers %}
    var a_{{ k }}_{{ j }} = subgroup_matrix_left<f16, 16, 16>();
{%- endfor %}
{%- endfor %}
{%- if BIASES and RATING_ROW %}
    let t_subgroup = subgroupAdd(t_part);
    if (lane == 0u) { sums[subgroup] = t_subgroup; }
{%- endif %}
{%- for phase in half_phases %}
{%- unless forloop.first %}
{%- unless was_converted %}
    workgroupBarrier();
{%- endunless %}
{%- endunless %}
{%- assign was_converted = phase.converted %}
{%- for store in phase.stores %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ store.subgroup }}u) {
{%- for tile in store.tiles %}
      subgroupMatrixStore<row_major>(&staged, {{ tile.place }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- endfor %}
    }
{%- endfor %}
    workgroupBarrier();
{%- for part in phase.rated %}
    {% unless part.both %}if (lane / 16u == {{ part.side }}u) {% endunless %}{
      let source = ({{ part.place }}u{% if part.both %} + lane / 16u{% endif %}) * 80u
        + {{ b_line | times: 5 }}u + (lane & 15u) / 4u;
{%- if INT8 %}
      b_{{ part.element }} = fma(
        256.0,
        one_number_of(source, lane & 3u),
        one_number_of(source + 5u, lane & 3u)
      );
{%- if BIASES %}
      s_{{ part.element }} = one_number_of(source + 10u, lane & 3u) * inverse;
{%- endif %}
{%- else %}
      b_{{ part.element }} = one_number_of(source, lane & 3u);
{%- if BIASES %}
      s_{{ part.element }} = one_number_of(source + 5u, lane & 3u) * inverse;
{%- endif %}
{%- endif %}
    }
{%- endfor %}
{%- if BIASES and phase.last_rated >= 0 %}
{%- if RATING_ROW %}
    t = sums[0];
{%- for other in other_subgroups %}
    t += sums[{{ other }}];
{%- endfor %}
{%- else %}
    // The products of ratings and ones are t.
{%- if INT8 %}
    t = fma(
      256.0,
      one_number_of({{ phase.last_rated }}u * 80u + 42u, 2u),
      one_number_of({{ phase.last_rated }}u * 80u + 47u, 2u)
    );
{%- else %}
    t = one_number_of({{ phase.last_rated }}u * 80u + 47u, 0u);
{%- endif %}
{%- endif %}
{%- for e in elements %}
    if (subgroup == {{ e }}u && thread < PADDED) { ones[thread / 4u][thread & 3u] = s_{{ e }}; }
{%- endfor %}
{%- endif %}
{%- if phase.converted %}
    for (var place = subgroup; place < {{ phase.count }}u; place += SUBGROUPS) {
      let own_line = lane / 2u;
      let side = lane & 1u;
      let source = place * 80u + own_line * 5u + side * 2u;
      var low = number_of(staged[source]) * inverse;
      var high = number_of(staged[source + 1u]) * inverse;
{%- assign end_row = phase.lines | map: "row" | last %}
{%- assign masked = false %}
{%- if RATING_ROW == false and end_row == last %}{% assign masked = true %}{% endif %}
{%- if BIASES or masked %}
{%- for line in phase.lines %}
{%- if forloop.first %}
      var tile_row = {{ line.row }}u;
      var column = place + {{ line.column }}u;
{%- else %}
      if (place >= {{ line.place }}u) { tile_row = {{ line.row }}u; column = place - {{ line.place }}u; }
{%- endif %}
{%- endfor %}
{%- endif %}
{%- if BIASES %}
      let part = ones[tile_row * 4u + own_line / 4u][own_line & 3u] / weight;
      low -= part * ones[column * 4u + side * 2u];
      high -= part * ones[column * 4u + side * 2u + 1u];
{%- endif %}
{%- if masked %}
      // Elements beyond the rank, where the ratings are, are set to 0.
      let held = select(0u, RANK, tile_row * 16u + own_line < RANK);
      let first_column = vec4<u32>(column * 16u + side * 8u) + vec4<u32>(0u, 1u, 2u, 3u);
      low = select(vec4f(), low, first_column < vec4<u32>(held));
      high = select(vec4f(), high, first_column + vec4<u32>(4u) < vec4<u32>(held));
{%- endif %}
      staged[HALVES + place * 32u + lane] = packed(low, high);
    }
    workgroupBarrier();
{%- for load in phase.loads %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ load.subgroup }}u) {
{%- for tile in load.tiles %}
      a_{{ tile.name }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, {% if tile.transposed %}col_major{% else %}row_major{% endif %}>(&staged, HALVES + {{ tile.place }}u * 32u, 2u);
{%- endfor %}
    }
{%- endfor %}
{%- endif %}
{%- endfor %}
