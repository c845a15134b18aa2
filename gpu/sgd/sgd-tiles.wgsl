// Template: each 16-byte piece of a row of factors in a thread is a variable of its own, whose type depends
// on the precision.
//
// Teams of LANES threads process the tile's ratings, which are sorted by row, in batches (the step: cuMF_SGD,
// section 2.2). A row's factors stay in registers until the team comes to a rating of another row, whose
// factors are loaded in advance.
{%- if LANES > 1 %}
diagnostic(off, subgroup_uniformity);
enable subgroups;
{%- endif %}
{%- if HALVES %}
enable f16;
{%- endif %}

var<workgroup> tile: array<{{ stored }}, PLACES * WIDTH>;
{%- if tail %}
// The features of each column that do not fit whole pieces for each thread, as words of two features (EvenRow
// in sgd-step.ts).
var<workgroup> tile_tails: array<u32, PLACES * TAIL>;
{%- endif %}
{%- if ADAPTIVE %}
var<workgroup> tile_sums: array<f32, PLACES>;
{%- endif %}

const NO_ROW = 0xffffffffu;
const NO_RATING = vec2<u32>(NO_ROW, 0u);

// A team's position in the ratings of its tile. All tiles are cut into the same number of batches, at the
// same fractions of their ratings, and process the batches in the same order. Since ratings are sorted by
// row, all tiles then use about the same rows at the same time, and these stay in the cache. Within a batch,
// each tile starts at a different rating and wraps around at the end, so that the tiles do not all update the
// same row at once.
struct Walk {
  batch: u32,
  first: u32,
  end: u32,
  at: u32,
  left: u32,
}

// Index in a tile of the first rating of batch `which`. It is computed with integers, so that each batch ends
// exactly where the next one starts.
fn batch_start(which: u32, count: u32) -> u32 {
  return which * (count / params.batches) + min(which, count % params.batches);
}

// Returns the position at the start of the team's batch number `batch`, or of the team's next batch that has
// ratings.
fn begin_batch(batch: u32, start: u32, count: u32, tile_number: u32) -> Walk {
  var walk = Walk(batch, 0u, 0u, 0u, 0u);
  while (walk.batch < params.batches && walk.left == 0u) {
    let which = (walk.batch * params.multiplier + params.offset) % params.batches;
    walk.first = start + batch_start(which, count);
    walk.end = start + batch_start(which + 1u, count);
    walk.left = walk.end - walk.first;
    if (walk.left == 0u) {
      walk.batch += THREADS / LANES;
    } else {
      walk.at = walk.first + (tile_number * 40503u + which * 9973u) % walk.left;
    }
  }
  return walk;
}

#import parts/main
{
  let number = group.y * groups.x + group.x;
  if (number >= params.tiles) {
    return;
  }
  let lane = thread % LANES;
  let team = thread / LANES;
{%- if tail %}
  let tail_word = {{ tail.word }};
  let tail_mask = {{ tail.type }}(select({{ step.scalar }}(0.0), {{ step.scalar }}(1.0), lane < TAIL));
{%- endif %}
{%- if TURNS %}
  // In every second team, pairs of pieces are swapped. Eight threads of two teams access workgroup memory at
  // the same time; without the swap they would use only half of its banks.
  let lane_even = lane + (team % 2u) * LANES;
  let lane_odd = lane - (team % 2u) * LANES;
{%- endif %}
  for (var i = thread; i < PLACES * WIDTH; i += THREADS) {
    let column = columns[number * PLACES + i / WIDTH];
    if (column != NO_ROW) {
      tile[i] = column_factors[column * PIECES + i % WIDTH];
    }
  }
{%- if tail %}
  for (var i = thread; i < PLACES * TAIL; i += THREADS) {
    let column = columns[number * PLACES + i / TAIL];
    if (column != NO_ROW) {
      tile_tails[i] = column_factors[column * PIECES + WIDTH + (i % TAIL) / 4u][i % TAIL % 4u];
    }
  }
{%- endif %}
{%- if ADAPTIVE %}
  for (var i = thread; i < PLACES; i += THREADS) {
    let column = columns[number * PLACES + i];
    if (column != NO_ROW) {
      tile_sums[i] = column_sums[column * SUM_STRIDE];
    }
  }
{%- endif %}
  workgroupBarrier();

  let first = starts[number];
  let count = starts[number + 1u] - first;
  var walk = begin_batch(team, first, count, number);
  // Ratings are loaded in advance, in groups of GROUP: group a is being processed, b is next, and c is being
  // loaded. With SPREAD, each thread loads only one rating of a group, number lane % 4, and gets the others
  // from its neighbours.
{%- for slot in slots %}
  var a_{{ slot }} = NO_RATING;
  var b_{{ slot }} = NO_RATING;
  var c_{{ slot }} = NO_RATING;
{%- endfor %}
  {
    {% render 'parts/sgd-advance', into: 'a', slots: slots, SPREAD: SPREAD %}
    {% render 'parts/sgd-advance', into: 'b', slots: slots, SPREAD: SPREAD %}
  }
  // p_*: factors of the current row. x_*: factors of the next row, as they are stored.
{%- for v in step.vectors %}
  var p_{{ v.name }} = {{ v.type }}();
{%- endfor %}
{%- for piece in pieces %}
  var x_{{ piece.at }} = {{ stored }}();
{%- endfor %}
{%- if tail %}
  var x_t = 0u;
{%- endif %}
{%- if ADAPTIVE %}
  var kept_sum = 0.0;
  var next_sum = 0.0;
{%- endif %}
  {
    let row = {{ group_ratings[0].read }}.x;
    if (row != NO_ROW) {
{%- for piece in pieces %}
      {% if piece.guarded %}if (lane + {{ piece.first }}u < WIDTH) {% endif %}{ x_{{ piece.at }} = row_factors[row * PIECES + {{ piece.lane }} + {{ piece.first }}u]; }
{%- endfor %}
{%- if tail %}
      x_t = row_factors[row * PIECES + WIDTH + tail_word / 4u][tail_word % 4u];
{%- endif %}
{%- if ADAPTIVE %}
      kept_sum = row_sums[row * SUM_STRIDE];
{%- endif %}
    }
{%- for piece in pieces %}
{%- for part in piece.parts %}
    p_{{ part.vector }} = {{ part.unpack_x }};
{%- endfor %}
{%- endfor %}
{%- if tail %}
    p_t = {{ tail.unpack_x }};
{%- endif %}
  }
  loop {
{%- for rating in group_ratings %}
    let r_{{ rating.at }} = {{ rating.read }};
{%- endfor %}
    if (r_0.x == NO_ROW) { break; }
    {% render 'parts/sgd-advance', into: 'c', slots: slots, SPREAD: SPREAD %}
{%- for turn in group_steps %}
    {
      let now = r_{{ turn.at }};
      let next = r_{{ turn.next }}.x;
      if (next != now.x && next != NO_ROW) {
{%- for piece in pieces %}
        {% if piece.guarded %}if (lane + {{ piece.first }}u < WIDTH) {% endif %}{ x_{{ piece.at }} = row_factors[next * PIECES + {{ piece.lane }} + {{ piece.first }}u]; }
{%- endfor %}
{%- if tail %}
        x_t = row_factors[next * PIECES + WIDTH + tail_word / 4u][tail_word % 4u];
{%- endif %}
{%- if ADAPTIVE %}
        next_sum = row_sums[next * SUM_STRIDE];
{%- endif %}
      }
      if (now.x != NO_ROW) {
        let place = (now.y & 0xffffu) * WIDTH;
        let rating = params.level + unpack2x16float(now.y).y;
{%- for piece in pieces %}
        var y_{{ piece.at }} = {{ stored }}();
        {% if piece.guarded %}if (lane + {{ piece.first }}u < WIDTH) {% endif %}{ y_{{ piece.at }} = tile[place + {{ piece.lane }} + {{ piece.first }}u]; }
{%- for part in piece.parts %}
        let q_{{ part.vector }} = {{ part.unpack_y }};
{%- endfor %}
{%- endfor %}
{%- if tail %}
        let tail_place = (now.y & 0xffffu) * TAIL + tail_word;
        let y_t = tile_tails[tail_place];
        let q_t = {{ tail.unpack_y }};
{%- endif %}
        {% render 'parts/sgd-step', step: step, HALVES: HALVES, ADAPTIVE: ADAPTIVE, BIASES: BIASES, row_sum: 'kept_sum', column_sum: 'tile_sums[now.y & 0xffffu]' %}
{%- for piece in pieces %}
        {% if piece.guarded %}if (lane + {{ piece.first }}u < WIDTH) {% endif %}{ tile[place + {{ piece.lane }} + {{ piece.first }}u] = {{ piece.pack_n }}; }
{%- endfor %}
{%- if tail %}
        tile_tails[tail_place] = {{ tail.pack_n }};
{%- endif %}
      }
      if (next != now.x) {
        if (now.x != NO_ROW) {
{%- for piece in pieces %}
          {% if piece.guarded %}if (lane + {{ piece.first }}u < WIDTH) {% endif %}{ row_factors[now.x * PIECES + {{ piece.lane }} + {{ piece.first }}u] = {{ piece.pack_p }}; }
{%- endfor %}
{%- if tail %}
          row_factors[now.x * PIECES + WIDTH + tail_word / 4u][tail_word % 4u] = {{ tail.pack_p }};
{%- endif %}
{%- if ADAPTIVE %}
          if (lane == 0u) { row_sums[now.x * SUM_STRIDE] = kept_sum; }
{%- endif %}
        }
{%- for piece in pieces %}
{%- for part in piece.parts %}
        p_{{ part.vector }} = {{ part.unpack_x }};
{%- endfor %}
{%- endfor %}
{%- if tail %}
        p_t = {{ tail.unpack_x }};
{%- endif %}
{%- if ADAPTIVE %}
        kept_sum = next_sum;
{%- endif %}
      }
    }
{%- endfor %}
{%- for slot in slots %}
    a_{{ slot }} = b_{{ slot }};
    b_{{ slot }} = c_{{ slot }};
{%- endfor %}
  }

  workgroupBarrier();
  for (var i = thread; i < PLACES * WIDTH; i += THREADS) {
    let column = columns[number * PLACES + i / WIDTH];
    if (column != NO_ROW) {
      column_factors[column * PIECES + i % WIDTH] = tile[i];
    }
  }
{%- if tail %}
  for (var i = thread; i < PLACES * TAIL; i += THREADS) {
    let column = columns[number * PLACES + i / TAIL];
    if (column != NO_ROW) {
      column_factors[column * PIECES + WIDTH + (i % TAIL) / 4u][i % TAIL % 4u] = tile_tails[i];
    }
  }
{%- endif %}
{%- if ADAPTIVE %}
  for (var i = thread; i < PLACES; i += THREADS) {
    let column = columns[number * PLACES + i];
    if (column != NO_ROW) {
      column_sums[column * SUM_STRIDE] = tile_sums[i];
    }
  }
{%- endif %}
}
