// SGD on a list of ratings in any order (cuMF_SGD, section 3.2.2, batch-Hogwild!): a team of LANES threads takes batches of consecutive
// ratings and steps without locks; it loads the next rating's factors only after a step, so that it sees its own steps.
{%- if LANES > 1 %}
diagnostic(off, subgroup_uniformity);
enable subgroups;
{%- endif %}

struct Params {
  ratings: u32,
  first_batch: u32,
  last_batch: u32,
  batch: u32,
  rate: f32,
  row_lambda: f32,
  column_lambda: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<u32>;
@group(0) @binding(2) var<storage, read> columns: array<u32>;
@group(0) @binding(3) var<storage, read> values: array<f32>;
@group(0) @binding(4) var<storage, read> order: array<u32>;
@group(0) @binding(5) var<storage, read_write> row_factors: array<{{ stored }}>;
@group(0) @binding(6) var<storage, read_write> column_factors: array<{{ stored }}>;
@group(0) @binding(7) var<storage, read_write> row_sums: array<f32>;
@group(0) @binding(8) var<storage, read_write> column_sums: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
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
