// Template: each operand of the tensor cores is a variable of its own.
{%- comment -%}
Computes product_e = (A v)[e * 32 + lane] on tensor cores, for the vector v that put_vector wrote to workgroup
memory. Elements after the last tile are undefined.
{%- endcomment %}
      workgroupBarrier();
      {
{%- for k in own_rows %}
        var y_{{ k }} = subgroup_matrix_result<f32, 8, 16>(0.0);
{%- endfor %}
{%- for j in tile_numbers %}
        let v_{{ j }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &staged,
          {{ j }}u * 2u,
          VECTOR_PITCH
        );
{%- for k in own_rows %}
        y_{{ k }} = subgroupMatrixMultiplyAccumulate(a_{{ k }}_{{ j }}, v_{{ j }}, y_{{ k }});
{%- endfor %}
{%- endfor %}
{%- for k in own_rows %}
        if (subgroup + {{ k }}u * SUBGROUPS < TILES) {
          subgroupMatrixStore<col_major>(
            &staged,
            PRODUCTS + (subgroup + {{ k }}u * SUBGROUPS) * 40u,
            y_{{ k }},
            5u
          );
        }
{%- endfor %}
      }
      workgroupBarrier();
{%- for e in elements %}
      { let source = PRODUCTS + ({{ e }}u * 2u + lane / 16u) * 40u + (lane & 15u) / 4u;
        product_{{ e }} = bitcast<f32>(staged[source][lane & 3u])
          + bitcast<f32>(staged[source + 5u][lane & 3u]); }
{%- endfor %}
