// Template: loops are unrolled, so that a thread's features stay in registers.
// All threads share a rating, and the workgroup takes EACH ratings at a time. A thread has some features: the
// same ones of theta_v, of p and of the sum. It loads its features of theta_v once, for the product theta_v^T
// p, and reads them from registers for the sum. Groups of WIDTH threads add their shares of the products by
// subgroup operations, and the groups' shares are added through workgroup memory, in a fixed order.
{%- if WIDTH > 1 %}
diagnostic(off, subgroup_uniformity);
enable subgroups;
{%- endif %}

// Products of each group of threads with EACH ratings. Double-buffered, so that one barrier a turn suffices.
var<workgroup> shares: array<vec4f, 2 * FOURS * GROUPS>;

{% render 'parts/unpacked', half: half -%}
// Adds the groups' shares of four ratings' products. `first`: the share of group 0.
fn added(first: u32) -> vec4f {
  var sum = shares[first];
{%- unless tree %}
  for (var group = 1u; group < GROUPS; group++) {
    sum += shares[first + group];
  }
{%- endunless %}
  return sum;
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) lane: u32
) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row of the vectors, first rating, ratings, slot.
  let part = work[number];
  let end = part.y + part.z;
{%- render 'parts/piece-sums', pieces: pieces, sums_rows: sums_rows %}
{%- if FIRST %}
  var rated = 0.0;
  var along = 0.0;
{%- endif %}
  let final_at = max(end, 1) - 1;
{%- for e in each %}
  var column_{{ e }} = indices[min(part.y + {{ e }}, final_at)];
{%- endfor %}
  let group = lane / WIDTH;
  var buffer = 0u;
  for (var at = part.y; at < end; at += EACH) {
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
    column_{{ e }} = indices[min(at + EACH + {{ e }}, final_at)];
{%- endfor %}
{%- for four in fours %}
    var products_{{ four.at }} = vec4f(
{%- for e in four.each %}
      {% render 'parts/piece-product', pieces: pieces, e: e %},
{%- endfor %}
    );
{%- for distance in distances %}
    products_{{ four.at }} += subgroupShuffleXor(products_{{ four.at }}, {{ distance }});
{%- endfor %}
{%- endfor %}
    if (lane % WIDTH == 0) {
{%- for four in fours %}
      shares[buffer + {{ four.at }} * GROUPS + group] = products_{{ four.at }};
{%- endfor %}
    }
    workgroupBarrier();
{%- if tree %}
    for (var distance = TREE; distance > 0; distance /= 2) {
      if (lane < distance && lane + distance < GROUPS) {
{%- for four in fours %}
        shares[buffer + {{ four.at }} * GROUPS + lane] +=
          shares[buffer + {{ four.at }} * GROUPS + lane + distance];
{%- endfor %}
      }
      workgroupBarrier();
    }
{%- endif %}
{%- for four in fours %}
    let sums_{{ four.at }} = added(buffer + {{ four.at }} * GROUPS);
{%- endfor %}
    buffer = FOURS * GROUPS - buffer;
{%- for four in fours %}
{%- for e in four.each %}
    { let one = select(0.0, 1.0, at + {{ e }} < end);
      let product = sums_{{ four.at }}[{{ forloop.index0 }}];
{%- render 'parts/rating-factor', first: FIRST, implicit: implicit, e: e %}
{%- render 'parts/add-pieces', pieces: pieces, sums_rows: sums_rows, e: e, weight: 'factor' %}
    }
{%- endfor %}
{%- endfor %}
  }
  let slot = part.w * SLOT_QUADS;
{%- for piece in pieces %}
  if (lane + {{ piece.first }} < PIECES) {
    let own = slot + piece_{{ piece.at }} * {{ piece.vectors.size }};
{%- for vector in piece.vectors %}
    slots[own + {{ vector.part }}] = q_{{ vector.number }};
{%- if sums_rows %}
    slots[own + QUADS + 1 + {{ vector.part }}] = s_{{ vector.number }};
{%- endif %}
{%- endfor %}
  }
{%- endfor %}
{%- if FIRST %}
  if (lane == 0) {
    slots[slot + QUADS] = vec4f(0.0, rated, along, 0.0);
  }
{%- endif %}
}
