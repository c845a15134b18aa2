// Template: each 16-byte piece of a row of factors in a thread is a variable of its own, whose type depends
// on the precision.
//
// While a rating is processed, the factors of the next rating are loaded. If both ratings have the same row or
// column, its updated factors stay in registers instead.
{%- if LANES > 1 %}
diagnostic(off, subgroup_uniformity);
enable subgroups;
{%- endif %}

const NONE = 0xffffffffu;

// Row, column and value of a rating, or NONE after the end.
fn rating_at(at: u32, end: u32) -> vec3<u32> {
  if (at >= end) {
    return vec3<u32>(NONE, NONE, 0u);
  }
  return vec3<u32>(ratings[3u * at], ratings[3u * at + 1u], ratings[3u * at + 2u]);
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32
) {
  let worker = group.y * groups.x + group.x;
  if (worker >= params.workers) {
    return;
  }
  let band = order[params.wave * params.workers + worker];
  if (band == NONE) {
    return;
  }
  let block = worker * params.column_bands + band;
  let end = starts[block + 1u];
  var at = starts[block];
  var now = rating_at(at, end);
  var next = rating_at(at + 1u, end);
{%- for piece in pieces %}
  var x_{{ piece.at }} = {{ stored }}();
  var y_{{ piece.at }} = {{ stored }}();
{%- endfor %}
  if (now.x != NONE) {
{%- for piece in pieces %}
    {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{
      x_{{ piece.at }} = row_factors[now.x * PIECES + lane + {{ piece.first }}u];
      y_{{ piece.at }} = column_factors[now.y * PIECES + lane + {{ piece.first }}u];
    }
{%- endfor %}
  }
{%- for piece in pieces %}
{%- for part in piece.parts %}
  var p_{{ part.vector }} = {{ part.unpack_x }};
  var q_{{ part.vector }} = {{ part.unpack_y }};
{%- endfor %}
{%- endfor %}
  while (now.x != NONE) {
    if (next.x != NONE) {
{%- for piece in pieces %}
      {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{
        x_{{ piece.at }} = row_factors[next.x * PIECES + lane + {{ piece.first }}u];
        y_{{ piece.at }} = column_factors[next.y * PIECES + lane + {{ piece.first }}u];
      }
{%- endfor %}
    }
    let coming = rating_at(at + 2u, end);
    let rating = bitcast<f32>(now.z);
    {% render 'parts/sgd-step', step: step, HALVES: HALVES, ADAPTIVE: ADAPTIVE, BIASES: BIASES, row_sum: 'row_sums[now.x * SUM_STRIDE]', column_sum: 'column_sums[now.y * SUM_STRIDE]' %}
    if (next.x != now.x) {
{%- for piece in pieces %}
      {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{ row_factors[now.x * PIECES + lane + {{ piece.first }}u] = {{ piece.pack_p }}; }
{%- for part in piece.parts %}
      p_{{ part.vector }} = {{ part.unpack_x }};
{%- endfor %}
{%- endfor %}
    }
    if (next.y != now.y) {
{%- for piece in pieces %}
      {% if piece.guarded %}if (lane + {{ piece.first }}u < PIECES) {% endif %}{ column_factors[now.y * PIECES + lane + {{ piece.first }}u] = {{ piece.pack_n }}; }
{%- for part in piece.parts %}
      q_{{ part.vector }} = {{ part.unpack_y }};
{%- endfor %}
{%- endfor %}
    } else {
{%- for v in step.vectors %}
      q_{{ v.name }} = n_{{ v.name }};
{%- endfor %}
    }
    now = next;
    next = coming;
    at++;
  }
}
