{%- comment -%}
Moves accumulated tiles of A / n, with biases less s s^T / (n weight), to the left operands a_k_j of the tensor cores: tile column j of the subgroup's tile row number k, which is
`subgroup` + k SUBGROUPS. b_e, and with biases s_e and t, come with the tiles: numbers e * 32 + lane of the vectors, which all subgroups hold. With INT8 tiles are whole numbers and ratings have two digits.
{%- endcomment %}
{%- for k in own_rows %}
{%- for j in tile_numbers %}
    var a_{{ k }}_{{ j }} = subgroup_matrix_left<f16, 16, 16>();
{%- endfor %}
{%- endfor %}
{%- if BIASES and RATING_ROW %}
    let t_subgroup = subgroupAdd(t_part);
    if (lane == 0u) { sums[subgroup] = t_subgroup; }
{%- endif %}
{%- assign last = tile_count | minus: 1 %}
{%- for phase in phases %}
{%- for store in phase.stores %}
    {% unless forloop.first %}else {% endunless %}if (subgroup == {{ store.subgroup }}u) {
{%- for tile in store.tiles %}
      subgroupMatrixStore<row_major>(&staged, {{ tile.place }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- endfor %}
    }
{%- endfor %}
    workgroupBarrier();
{%- for line in phase.rows %}
{%- assign has_b = false %}
{%- if line.row == tile_count %}{% assign has_b = true %}{% assign b_line = 0 %}{% endif %}
{%- if line.row == last and RATING_ROW == false %}{% assign has_b = true %}{% assign b_line = 8 %}{% endif %}
{%- if has_b %}
{%- for e in elements %}
    { let source = ({{ line.place }}u + tile_{{ e }}) * 80u + {{ b_line | times: 5 }}u + (lane & 15u) / 4u;
{%- if INT8 %}
      b_{{ e }} = fma(256.0, number_of(staged[source])[lane & 3u], number_of(staged[source + 5u])[lane & 3u]);
{%- if BIASES %}
      s_{{ e }} = number_of(staged[source + 10u])[lane & 3u] * inverse;
{%- endif %}
{%- else %}
      b_{{ e }} = number_of(staged[source])[lane & 3u];
{%- if BIASES %}
      s_{{ e }} = number_of(staged[source + 5u])[lane & 3u] * inverse;
{%- endif %}
{%- endif %} }
{%- endfor %}
{%- if BIASES %}
{%- if RATING_ROW %}
    t = sums[0];
{%- for other in other_subgroups %}
    t += sums[{{ other }}];
{%- endfor %}
{%- else %}
    // The products of ratings and ones are t.
    { let source = ({{ line.place }}u + TILES - 1u) * 80u + 42u;
{%- if INT8 %}
      t = fma(256.0, number_of(staged[source]).z, number_of(staged[source + 5u]).z);
{%- else %}
      t = number_of(staged[source + 5u]).x;
{%- endif %} }
{%- endif %}
{%- for e in elements %}
    if (subgroup == {{ e }}u && thread < PADDED) { ones[thread / 4u][thread & 3u] = s_{{ e }}; }
{%- endfor %}
    workgroupBarrier();
{%- endif %}
{%- endif %}
{%- endfor %}
{%- for line in phase.rows %}
{%- if line.row < tile_count %}
    for (var at = thread; at < {{ line.row | plus: 1 }}u * 32u; at += THREADS) {
      let column = at / 32u;
      let side = at & 1u;
      let own_line = (at & 31u) / 2u;
      let source = ({{ line.place }}u + column) * 80u + own_line * 5u + side * 2u;
      var low = number_of(staged[source]) * inverse;
      var high = number_of(staged[source + 1u]) * inverse;
{%- if BIASES %}
      let part = ones[{{ line.row }}u * 4u + own_line / 4u][own_line & 3u] / weight;
      low -= part * ones[column * 4u + side * 2u];
      high -= part * ones[column * 4u + side * 2u + 1u];
{%- endif %}
{%- if line.row == last and RATING_ROW == false %}
      // Ratings lie beyond the rank.
      let held = select(0u, RANK, {{ line.row }}u * 16u + own_line < RANK);
      let first_column = vec4<u32>(column * 16u + side * 8u) + vec4<u32>(0u, 1u, 2u, 3u);
      low = select(vec4f(), low, first_column < vec4<u32>(held));
      high = select(vec4f(), high, first_column + vec4<u32>(4u) < vec4<u32>(held));
{%- endif %}
      staged[HALVES + ({{ line.place }}u + column) * 32u + (at & 31u)] = packed(low, high);
    }
{%- endif %}
{%- endfor %}
    workgroupBarrier();
{%- for line in phase.rows %}
{%- if line.row < tile_count %}
{%- for k in own_rows %}
{%- assign least = k | times: SUBGROUPS %}
{%- assign most = least | plus: SUBGROUPS %}
{%- if line.row >= least %}
    {
{%- if line.row < most %}
      if (subgroup + {{ least }}u == {{ line.row }}u) {
{%- for j in (0..line.row) %}
        a_{{ k }}_{{ j }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&staged, HALVES + {{ line.place | plus: j }}u * 32u, 2u);
{%- endfor %}
      }
{%- endif %}
{%- if line.row > least %}
      // The upper triangle is the lower one's transpose.
      if (subgroup + {{ least }}u < {{ line.row }}u) {
        a_{{ k }}_{{ line.row }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, col_major>(&staged, HALVES + ({{ line.place }}u + subgroup + {{ least }}u) * 32u, 2u);
      }
{%- endif %}
    }
{%- endif %}
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- endfor %}
