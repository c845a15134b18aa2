// Template: a thread keeps a tile of sums in registers, so loops over it must be unrolled.
//
// Loads run ahead (cuMF, Algorithm 2, lines 3-12): while BIN ratings are summed, the rows of theta of the next
// BIN are loaded to registers, and the columns after those.
//
// LANES threads have one part of a row, and ROWS parts share a workgroup (clMF, section 3.2.1). If A has more
// blocks than LANES, then GROUPS workgroups share a part (section 3.2.2), and workgroup 0 of these writes b.
// Each thread sums one block of TILE x TILE elements of the lower triangle of A. TEAMS x UNITS threads of a
// part also load rows of theta: each loads one unit of 16 bytes of every TEAMS-th rating, and sums this
// unit's terms of b.
//
// `staged` has two buffers: one is filled while the other is still read. For a rating, the first four
// features of all tiles are stored before the other four. So threads with neighbouring tiles read from
// different banks.

var<workgroup> staged: array<vec4f, 2 * ROWS * BIN * QUADS>;

#import parts/triangle

// Loads a unit of row `column` of theta if it is wanted, else zeros.
fn gather(column: u32, unit: u32, wanted: bool) -> {{ element }} {
  if (!wanted) {
    return {{ element }}();
  }
  return fixed[column * UNITS_OF_ROW + unit];
}

fn index_at(at: u32, wanted: bool) -> u32 {
  if (!wanted) {
    return 0;
  }
  return indices[at];
}

fn rating_at(at: u32, wanted: bool) -> f32 {
  if (!wanted) {
    return 0.0;
  }
  return values[at];
}

#import parts/main-by-id
{
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

  // Threads beyond the last block sum it, too, and do not write it.
  let block = min(group * LANES + lane, BLOCKS - 1);
  let place = triangle_place(block);
{% for sum in sums %}
  var {{ sum.name }} = vec4f();
{% endfor %}

  // This thread loads unit `unit` of the ratings team, team + TEAMS, ... of each bin.
  let stages = lane < TEAMS * UNITS;
  let team = lane / UNITS;
  let own = lane % UNITS;
{% if precision == 'f32' and TILE == 8 %}
  let unit = own % TILES_OF_SIDE * 2 + own / TILES_OF_SIDE;
{% else %}
  let unit = own;
{% endif %}
  let count = select(0u, part.z, stages);
{% for quad in quads %}
  var bias_{{ quad.index }} = vec4f();
{% if biases %}
  var ones_{{ quad.index }} = vec4f();
{% endif %}
{% endfor %}
{% if biases %}
  var total = 0.0;
{% endif %}
{% for load in loads %}
  let at_{{ load }} = team + {{ load }} * TEAMS;
  var content_{{ load }} = gather(index_at(part.y + at_{{ load }}, at_{{ load }} < count), unit, at_{{ load }} < count);
  var rating_{{ load }} = rating_at(part.y + at_{{ load }}, at_{{ load }} < count);
  var column_{{ load }} = index_at(part.y + at_{{ load }} + BIN, at_{{ load }} + BIN < count);
{% endfor %}

  var buffer = 0u;
  for (var done = 0u; done < longest; done += BIN) {
    let base = (buffer + batch) * BIN * QUADS;
    buffer = ROWS - buffer;
    if (stages) {
{% for load in loads %}
      {
        let content = content_{{ load }};
{% if implicit %}
        let target_rating = select(0.0, fma(params.alpha, rating_{{ load }}, params.base), rating_{{ load }} > 0.0);
        // The factor for both sides of theta theta^T, whose weight is alpha |r|.
        let root = sqrt(params.alpha * abs(rating_{{ load }}));
{% else %}
        let target_rating = rating_{{ load }};
{% endif %}
{% for quad in quads %}
        let quad_{{ quad.index }} = {{ quad.content }};
        staged[base + at_{{ load }} * QUADS + own * UNIT_STEP + {{ quad.offset }}] =
          quad_{{ quad.index }}{% if implicit %} * root{% endif %};
        bias_{{ quad.index }} = fma(vec4f(target_rating), quad_{{ quad.index }}, bias_{{ quad.index }});
{% if biases %}
        ones_{{ quad.index }} += quad_{{ quad.index }};
{% endif %}
{% endfor %}
{% if biases %}
        total += target_rating;
{% endif %}
      }
{% endfor %}
    }
    let next = done + BIN;
{% for load in loads %}
    content_{{ load }} = gather(column_{{ load }}, unit, next + at_{{ load }} < count);
    rating_{{ load }} = rating_at(part.y + next + at_{{ load }}, next + at_{{ load }} < count);
    column_{{ load }} = index_at(part.y + next + BIN + at_{{ load }}, next + BIN + at_{{ load }} < count);
{% endfor %}
    workgroupBarrier();
    for (var k = 0u; k < BIN; k += UNROLLED) {
{% for step in unrolled %}
      {
        let at = base + (k + {{ step }}) * QUADS;
{% for q in quads_of_tile %}
        let left_{{ q }} = staged[at + {{ q }} * TILES_OF_SIDE + place.x];
        let right_{{ q }} = staged[at + {{ q }} * TILES_OF_SIDE + place.y];
{% endfor %}
{% for sum in sums %}
        {{ sum.name }} = fma(vec4f(left_{{ sum.left }}), right_{{ sum.right }}, {{ sum.name }});
{% endfor %}
      }
{% endfor %}
    }
  }

  // After the loop, so that the loop has more registers for sums.
  let slot = part.w * SLOT_QUADS;
  let tile = place * TILE / 16;
  let within = place * TILE % 16;
  let kept = exists && block == group * LANES + lane && tile.x >= tile.y;
  let corner = slot + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + within.x * 4 + within.y / 4;
  if (kept) {
{% for sum in sums %}
    slots[corner + {{ sum.offset }}] = {{ sum.name }};
{% endfor %}
    // In a slot, the 16 x 16 tiles on the diagonal of A are stored as full squares. So a block below the
    // diagonal of such a tile is also written transposed, above the diagonal.
    if (tile.x == tile.y && place.x != place.y) {
      let mirrored = slot + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + within.y * 4 + within.x / 4;
{% for column in mirror %}
      slots[mirrored + {{ column.offset }}] = vec4f({{ column.elements }});
{% endfor %}
    }
  }
  if (group > 0) {
    return;
  }
{% if COMPUTED < 16 %}
  // The last 16 x 16 tiles have rows and columns that no block computes. Solvers multiply them by 0.
  if (exists) {
    for (var at = lane; at < TILES * 64; at += LANES) {
      if (at % 64 / 4 >= COMPUTED || (at / 64 == TILES - 1 && at % 4 * 4 >= COMPUTED)) {
        slots[slot + TILES * (TILES - 1) / 2 * 64 + at] = vec4f();
      }
    }
  }
{% endif %}
{% for vector in vectors %}
  // Adds the teams' shares of {{ vector.about }}.
  workgroupBarrier();
  if (stages) {
    let at = (batch * TEAMS + team) * (QUADS + 1);
{% for quad in quads %}
    staged[at + unit * {{ quads.size }} + {{ quad.index }}] = {{ vector.name }}_{{ quad.index }};
{% endfor %}
{% if vector.name == 'ones' %}
    if (own == 0) {
      staged[at + QUADS] = vec4f(total, 0.0, 0.0, 0.0);
    }
{% endif %}
  }
  workgroupBarrier();
  if (exists) {
    for (var quad = lane; quad < {{ vector.quads }}; quad += LANES) {
      var sum = vec4f();
      if (quad < QUADS || quad == QUADS_OF_ROW) {
        for (var other = 0u; other < TEAMS; other++) {
          sum += staged[(batch * TEAMS + other) * (QUADS + 1) + min(quad, QUADS)];
        }
      }
      slots[slot + BIAS_START + {{ vector.offset }} + quad] = sum;
    }
  }
{% endfor %}
}
