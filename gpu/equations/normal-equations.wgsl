// Template: a thread keeps a tile of sums in registers, so loops over it must be unrolled.
//
// Computes A = sum of theta_v theta_v^T and b = sum of r_v theta_v over the ratings of a part of a row (cuMF,
// Algorithm 2, lines 3-12), without tensor cores.
//
// BIN rows of theta at a time are copied to workgroup memory (`staged`). A thread sums one block of TILE x
// TILE elements of the lower triangle of A in registers. LANES threads have one part of a row, and ROWS parts
// share a workgroup (clMF, section 3.2.1). If A has more blocks than LANES, then GROUPS workgroups share a
// part (section 3.2.2), and workgroup 0 of these also sums b.

{% if vectorized %}
var<workgroup> staged: array<vec4f, ROWS * BIN * QUADS>;
{% else %}
var<workgroup> staged: array<f32, ROWS * BIN * STRIDE>;
{% endif %}
var<workgroup> ratings: array<f32, ROWS * BIN>;
var<workgroup> columns: array<u32, ROWS * BIN>;
{% if implicit %}
var<workgroup> weights: array<f32, ROWS * BIN>;
{% endif %}

#import parts/triangle

// Four features of a staged row.
fn staged_quad(row: u32, quad: u32) -> vec4f {
{% if vectorized %}
  return staged[row * QUADS + quad];
{% else %}
  let at = row * STRIDE + 4 * quad;
  return vec4f(staged[at], staged[at + 1], staged[at + 2], staged[at + 3]);
{% endif %}
}

// Copies one piece of row `column` of theta to row `row` of `staged`, in float32. A piece is one element of
// the buffer `fixed`.
fn stage(row: u32, column: u32, piece: u32) {
  let content = fixed[column * PIECES + piece];
{% if precision == 'f16' and vectorized %}
  let at = row * QUADS + 2 * piece;
  staged[at] = vec4f(unpack2x16float(content.x), unpack2x16float(content.y));
  staged[at + 1] = vec4f(unpack2x16float(content.z), unpack2x16float(content.w));
{% elsif precision == 'f16' %}
  let pair = unpack2x16float(content);
  staged[row * STRIDE + 2 * piece] = pair.x;
  staged[row * STRIDE + 2 * piece + 1] = pair.y;
{% else %}
  staged[row * PIECES + piece] = content;
{% endif %}
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let number = id.y * size.x + id.x;
  let group = number % GROUPS;
  let first = number / GROUPS * ROWS;
  var longest = 0u;
  for (var i = first; i < min(first + ROWS, params.count); i++) {
    longest = max(longest, work[i].z);
  }
  let batch = thread / LANES;
  let lane = thread % LANES;
  let exists = first + batch < params.count;
  var part = vec4u();
  if (exists) {
    part = work[first + batch];
  }
  let base = batch * BIN;

  let block = group * LANES + lane;
{% if triangle == 'full' %}
  let place = vec2u(block / SIDE, block % SIDE);
{% else %}
  let place = triangle_place(block);
{% endif %}
  let tile = place * TILE / 16;
  let within = place * TILE % 16;
  let kept = exists && block < BLOCKS && tile.x >= tile.y;
  let corner = part.w * SLOT_QUADS + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + within.x * 4 + within.y / 4;
{% for sum in sums %}
  var {{ sum.name }} = vec4f();
{% if accumulate == 'memory' %}
  if (kept) {
    slots[corner + {{ sum.offset }}] = vec4f();
  }
{% endif %}
{% endfor %}
{% if biases %}
  var total = 0.0;
{% endif %}
{% for part in bias_parts %}
  var bias_{{ part }} = vec4f();
{% if biases %}
  var ones_{{ part }} = vec4f();
{% endif %}
{% endfor %}

  for (var k = lane; k < min(BIN, part.z); k += LANES) {
    columns[base + k] = indices[part.y + k];
  }
  for (var done = 0u; done < longest; done += BIN) {
    let left = part.z - min(part.z, done);
    let count = min(left, BIN);
    // Waits until the columns of the next BIN ratings are in workgroup memory, and until all threads have
    // summed the ratings before them, whose rows of theta are overwritten next.
    workgroupBarrier();
{% if staging == 'coalesced' %}
    for (var at = lane; at < count * PIECES; at += LANES) {
      let k = at / PIECES;
      stage(base + k, columns[base + k], at % PIECES);
    }
{% else %}
    // Neighbours read different rows of theta (cuMF_ALS, Solution 2).
    for (var at = lane; at < BIN * PIECES; at += LANES) {
      let k = at % BIN;
      if (k < count) {
        stage(base + k, columns[base + k], at / BIN);
      }
    }
{% endif %}
{% if implicit %}
    for (var k = lane; k < count; k += LANES) {
      let rating = values[part.y + done + k];
      weights[base + k] = params.alpha * abs(rating);
      ratings[base + k] = select(0.0, fma(params.alpha, rating, params.base), rating > 0.0);
    }
{% else %}
    if (group == 0) {
      for (var k = lane; k < count; k += LANES) {
        ratings[base + k] = values[part.y + done + k];
      }
    }
{% endif %}
    workgroupBarrier();
    // Loads the columns of the next BIN ratings while these are summed.
    for (var k = lane; k < min(BIN, left - count); k += LANES) {
      columns[base + k] = indices[part.y + done + BIN + k];
    }
    if (block < BLOCKS) {
      for (var k = 0u; k < count; k++) {
{% for quad in quads %}
        let left_{{ quad }} = staged_quad(base + k, place.x * TILE / 4 + {{ quad }}){% if implicit %} * weights[base + k]{% endif %};
        let right_{{ quad }} = staged_quad(base + k, place.y * TILE / 4 + {{ quad }});
{% endfor %}
{% for sum in sums %}
{% if accumulate == 'memory' %}
        if (kept) {
          slots[corner + {{ sum.offset }}] = fma(
            vec4f(left_{{ sum.left }}),
            right_{{ sum.right }},
            slots[corner + {{ sum.offset }}]
          );
        }
{% else %}
        {{ sum.name }} = fma(vec4f(left_{{ sum.left }}), right_{{ sum.right }}, {{ sum.name }});
{% endif %}
{% endfor %}
      }
    }
    if (group == 0) {
      // Sums b. Its elements are given to threads from the last one backwards, since the last threads may
      // have no block of A.
{% for part in bias_parts %}
      let quad_{{ part }} = LANES - 1 - lane + {{ part }} * LANES;
      if (quad_{{ part }} < QUADS) {
        for (var k = 0u; k < count; k++) {
          bias_{{ part }} = fma(
            vec4f(ratings[base + k]),
            staged_quad(base + k, quad_{{ part }}),
            bias_{{ part }}
          );
{% if biases %}
          ones_{{ part }} += staged_quad(base + k, quad_{{ part }});
{% endif %}
        }
      }
{% endfor %}
{% if biases %}
      if (lane == 0) {
        for (var k = 0u; k < count; k++) {
          total += ratings[base + k];
        }
      }
{% endif %}
    }
  }

  if (kept) {
{% for sum in sums %}
{% if accumulate == 'memory' %}
    {{ sum.name }} = slots[corner + {{ sum.offset }}];
{% else %}
    slots[corner + {{ sum.offset }}] = {{ sum.name }};
{% endif %}
{% endfor %}
{% if triangle == 'lower' %}
    // In a slot, the 16 x 16 tiles on the diagonal of A are stored as full squares. So a block below the
    // diagonal of such a tile is also written transposed, above the diagonal.
    if (tile.x == tile.y && place.x != place.y) {
      let mirrored = part.w * SLOT_QUADS + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + within.y * 4
        + within.x / 4;
{% for column in mirror %}
      slots[mirrored + {{ column.offset }}] = vec4f({{ column.elements }});
{% endfor %}
    }
{% endif %}
  }
  if (group == 0 && exists) {
{% for part in bias_parts %}
    let quad_{{ part }} = LANES - 1 - lane + {{ part }} * LANES;
    if (quad_{{ part }} < QUADS) {
      slots[part.w * SLOT_QUADS + BIAS_START + quad_{{ part }}] = bias_{{ part }};
{% if biases %}
      slots[part.w * SLOT_QUADS + BIAS_START + QUADS + quad_{{ part }}] = ones_{{ part }};
{% endif %}
    }
{% endfor %}
{% if biases %}
    if (lane == 0) {
      slots[part.w * SLOT_QUADS + BIAS_START + 2 * QUADS] = vec4f(total, 0.0, 0.0, 0.0);
    }
{% endif %}
  }
}
