// Template: each 16-byte piece of a row of factors in a thread is a variable of its own, whose type depends
// on the precision.
//
// A team of LANES threads processes one rating at a time (cuMF_SGD, section 3.2.2). It loads the factors of the
// next rating only after it has stored the updates of the last one, so that it reads its own updates.
{%- if LANES > 1 %}
diagnostic(off, subgroup_uniformity);
enable subgroups;
{%- endif %}

#import parts/main
{
  let lane = thread % LANES;
  let teams = groups.x * groups.y * (THREADS / LANES);
  let team = (group.y * groups.x + group.x) * (THREADS / LANES) + thread / LANES;
  for (var number = params.first_batch + team; number < params.last_batch; number += teams) {
    let first = order[number] * params.batch;
    let end = min(first + params.batch, params.ratings);
    for (var at = first; at < end; at++) {
      let row = rows[at];
      let column = columns[at];
      let rating = values[at];
{%- for piece in pieces %}
      var x_{{ piece.at }} = {{ stored }}();
      var y_{{ piece.at }} = {{ stored }}();
      {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{
        x_{{ piece.at }} = row_factors[row * PIECES + lane + {{ piece.first }}u];
        y_{{ piece.at }} = column_factors[column * PIECES + lane + {{ piece.first }}u];
      }
{%- for part in piece.parts %}
      var p_{{ part.vector }} = {{ part.unpack_x }};
      let q_{{ part.vector }} = {{ part.unpack_y }};
{%- endfor %}
{%- endfor %}
      {% render 'parts/sgd-step', step: step, HALVES: HALVES, ADAPTIVE: ADAPTIVE, BIASES: BIASES, row_sum: 'row_sums[row * SUM_STRIDE]', column_sum: 'column_sums[column * SUM_STRIDE]' %}
{%- for piece in pieces %}
      {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{
        row_factors[row * PIECES + lane + {{ piece.first }}u] = {{ piece.pack_p }};
        column_factors[column * PIECES + lane + {{ piece.first }}u] = {{ piece.pack_n }};
      }
{%- endfor %}
    }
  }
}
