// Template: loops are unrolled, so that a thread's features stay in registers.
// The workgroup is divided into teams of LANES threads. A team loads EACH ratings at a time. Each of its
// threads has some features: the same ones of theta_v, of p and of the sum. At the end, each group of WIDTH
// threads adds its sums by subgroup operations, and the groups' sums are added through workgroup memory.
diagnostic(off, subgroup_uniformity);
enable subgroups;

var<workgroup> sums: array<vec4f, GROUPS * TEAM_QUADS>;

{% render 'parts/unpacked', half: half -%}
// Writes the sum over all groups of threads to `count` quads (four numbers each) of `slots`, from quad
// `first` on.
fn sum_groups(thread: u32, first: u32, count: u32) {
  workgroupBarrier();
  for (var quad = thread; quad < count; quad += THREADS) {
    var sum = sums[quad];
    for (var group = 1u; group < GROUPS; group++) {
      sum += sums[group * TEAM_QUADS + quad];
    }
    slots[first + quad] = sum;
  }
}

#import parts/main-by-id
{
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row of the vectors, first rating, ratings, slot.
  let part = work[number];
  let end = part.y + part.z;
  let team = thread / LANES;
  let lane = thread % LANES;
{%- render 'parts/piece-sums', pieces: pieces, sums_rows: sums_rows %}
{%- if FIRST %}
  var rated = 0.0;
  var along = 0.0;
{%- endif %}
  let final_at = max(end, 1) - 1;
  let begin = part.y + team * EACH;
{%- for e in each %}
  var column_{{ e }} = indices[min(begin + {{ e }}, final_at)];
{%- endfor %}
  // All teams execute the same number of turns, as subgroup operations require. In turns after a team's last
  // rating, ratings have the factor 0.
  for (var turn = part.y; turn < end; turn += TEAMS * EACH) {
    let at = turn + team * EACH;
{%- for e in each %}
{%- for piece in pieces %}
    let theta_{{ e }}_{{ piece.at }} = fixed[column_{{ e }} * PIECES + piece_{{ piece.at }}];
{%- endfor %}
{%- if rates %}
    let rating_{{ e }} = values[min(at + {{ e }}, final_at)];
{%- endif %}
{%- endfor %}
    // Loads the columns of the next ratings, while the factors of these arrive.
{%- for e in each %}
    column_{{ e }} = indices[min(at + TEAMS * EACH + {{ e }}, final_at)];
{%- endfor %}
    var products = vec{{ each.size }}f(
{%- for e in each %}
      {% render 'parts/piece-product', pieces: pieces, e: e %},
{%- endfor %}
    );
{%- for distance in distances %}
    products += subgroupShuffleXor(products, {{ distance }});
{%- endfor %}
{%- for e in each %}
    { let one = select(0.0, 1.0, at + {{ e }} < end);
      let product = products[{{ e }}];
{%- render 'parts/rating-factor', first: FIRST, implicit: implicit, e: e %}
{%- render 'parts/add-pieces', pieces: pieces, sums_rows: sums_rows, e: e, weight: 'factor' %}
    }
{%- endfor %}
  }
  let slot = part.w * SLOT_QUADS;
  let group = thread / WIDTH;
  let first_team = thread % WIDTH < LANES;
{%- for distance in merges %}
{%- if FIRST %}
  rated += subgroupShuffleXor(rated, {{ distance }});
  along += subgroupShuffleXor(along, {{ distance }});
{%- endif %}
{%- for piece in pieces %}
{%- for vector in piece.vectors %}
  q_{{ vector.number }} += subgroupShuffleXor(q_{{ vector.number }}, {{ distance }});
{%- if sums_rows %}
  s_{{ vector.number }} += subgroupShuffleXor(s_{{ vector.number }}, {{ distance }});
{%- endif %}
{%- endfor %}
{%- endfor %}
{%- endfor %}
{%- for piece in pieces %}
  if (first_team && lane + {{ piece.first }} < PIECES) {
{%- for vector in piece.vectors %}
    sums[group * TEAM_QUADS + piece_{{ piece.at }} * {{ piece.vectors.size }} + {{ vector.part }}] = q_{{ vector.number }};
{%- endfor %}
  }
{%- endfor %}
{%- if FIRST %}
  if (first_team && lane == 0) {
    sums[group * TEAM_QUADS + QUADS] = vec4f(0.0, rated, along, 0.0);
  }
{%- endif %}
  sum_groups(thread, slot, {% if FIRST %}QUADS + 1{% else %}QUADS{% endif %});
{%- if sums_rows %}
  workgroupBarrier();
{%- for piece in pieces %}
  if (first_team && lane + {{ piece.first }} < PIECES) {
{%- for vector in piece.vectors %}
    sums[group * TEAM_QUADS + piece_{{ piece.at }} * {{ piece.vectors.size }} + {{ vector.part }}] = s_{{ vector.number }};
{%- endfor %}
  }
{%- endfor %}
  sum_groups(thread, slot + QUADS + 1, QUADS);
{%- endif %}
}
