#part score-tile
// Template: loops are unrolled, so that a thread's 64 scores stay in registers.
// Computes the scores x.theta of ROWS rows and COLUMNS columns (a tile). A thread computes 8 x 8 of them, in
// s00 to s77. Eight features at a time are in workgroup memory, and the next eight are loaded meanwhile.
    let first_column = tile * COLUMNS;
    let row_at = own_row * params.quads;
    let column_at = min(first_column + thread % COLUMNS, params.columns - 1) * params.quads
      + thread / COLUMNS;
    var next_row0 = row_factors[row_at];
    var next_row1 = row_factors[row_at + 1];
    var next_column = column_factors[column_at];
    {%- for i in (0..7) %}
    {%- for j in (0..7) %}
    var s{{ i }}{{ j }} = 0.0;
    {%- endfor %}
    {%- endfor %}
    for (var slab = 1u; slab <= params.slabs; slab++) {
      workgroupBarrier();
      row_tile[thread] = next_row0;
      row_tile[ROWS + thread] = next_row1;
      column_tile[thread] = next_column;
      workgroupBarrier();
      // The next eight are loaded while these are used.
      let ahead = 2 * min(slab, params.slabs - 1);
      next_row0 = row_factors[row_at + ahead];
      next_row1 = row_factors[row_at + ahead + 1];
      next_column = column_factors[column_at + ahead];
      for (var quad = 0u; quad < 2; quad++) {
        {%- for i in (0..7) %}
        let x{{ i }} = row_tile[quad * ROWS + lane_row + {{ i | times: 16 }}];
        {%- endfor %}
        var theta: vec4f;
        {%- for j in (0..7) %}
        theta = column_tile[quad * COLUMNS + lane_column + {{ j | times: 8 }}];
        {%- for i in (0..7) %}
        s{{ i }}{{ j }} = fma(
          x{{ i }}.x,
          theta.x,
          fma(x{{ i }}.y, theta.y, fma(x{{ i }}.z, theta.z, fma(x{{ i }}.w, theta.w, s{{ i }}{{ j }})))
        );
        {%- endfor %}
        {%- endfor %}
      }
    }
