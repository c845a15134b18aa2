// Template: each tile of A that a subgroup sums is a variable of its own; a plan in TypeScript assigns tiles
// to subgroups.
#import parts/tensor-directives

#import parts/tensor-declarations

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  #import parts/number
  let part = work[number];
  let first = part.y;
  let end = part.y + part.z;
  let gather_row = thread / LANES_PER_ROW;
  let chunk = thread % LANES_PER_ROW;
{%- for pass in passes %}
  var next_{{ pass }} = vec4<u32>();
{%- if IMPLICIT %}
  var rated_{{ pass }} = 0u;
{%- endif %}
{%- endfor %}
{%- if CENTRE %}
  var next_bias = 0.0;
{%- endif %}
  var coming = vec2<u32>();
  if (thread < BIN) {
    ring[thread] = entry_of(rating_at(first + thread, end));
    ring[BIN + thread] = entry_of(rating_at(first + BIN + thread, end));
    coming = rating_at(first + 2u * BIN + thread, end);
  }
  workgroupBarrier();
  #import parts/tensor-accumulate
  let slot = part.w * SLOT_VECTORS;
{%- for deal in deals %}
  {% unless forloop.first %}else {% endunless %}if (subgroup == {{ deal.subgroup }}u) {
{%- for tile in deal.tiles %}
{%- if tile.row == TILES %}
    subgroupMatrixStore<row_major>(&staged, {{ tile.column }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- else %}
    subgroupMatrixStore<row_major>(&slots, slot + {{ tile.index }}u * 64u, sum_{{ tile.accumulator }}, 4u);
{%- assign last = TILES | minus: 1 %}
{%- if tile.row == last and RATING_ROW == false %}
    subgroupMatrixStore<row_major>(&staged, {{ tile.column }}u * 80u, sum_{{ tile.accumulator }}, 5u);
{%- endif %}
{%- endif %}
{%- endfor %}
  }
{%- endfor %}
{%- if BIASES and RATING_ROW %}
  let t_subgroup = subgroupAdd(t_part);
  if ((thread & 31u) == 0u) { ring[subgroup].x = bitcast<u32>(t_subgroup); }
{%- endif %}
  storageBarrier();
  workgroupBarrier();
  // Writes b, four numbers in each thread. In the tiles, b is the row of products with the ratings.
  if (thread < TILES * 4u) {
    var b = bitcast<vec4f>(staged[(thread / 4u) * 80u + RATING_LINE * 5u + thread % 4u]) * params.unscale;
{%- unless RATING_ROW %}
    if (thread == TILES * 4u - 2u) {
      b = vec4f();
    }
    // The ratings were multiplied as column 8 of the last 16 columns, which is padding. So row 8 and column 8
    // of the last tiles contain products with ratings. In a slot they must be 0.
    slots[slot + (LOWER_TILES - TILES + thread / 4u) * 64u + 32u + thread % 4u] = vec4f();
{%- endunless %}
    slots[slot + LOWER_TILES * 64u + thread] = b;
{%- if BIASES %}
    // Writes s, the sum of the rated rows of theta. Each rating was followed by a 1, so the row of products
    // with these ones, the next row of the tiles, is s.
    var s = bitcast<vec4f>(staged[(thread / 4u) * 80u + (RATING_LINE + 1u) * 5u + thread % 4u]);
{%- unless RATING_ROW %}
    if (thread == TILES * 4u - 2u) {
      // t, the sum of the ratings, is the product of the column of ratings with the column of ones.
      slots[slot + LOWER_TILES * 64u + TILES * 8u] = vec4f(s.x * params.unscale, 0.0, 0.0, 0.0);
      s = vec4f();
    }
    slots[slot + (LOWER_TILES - TILES + thread / 4u) * 64u + 36u + thread % 4u] = vec4f();
{%- endunless %}
    slots[slot + LOWER_TILES * 64u + TILES * 4u + thread] = s;
{%- endif %}
  }
{%- if BIASES and RATING_ROW %}
  if (thread == 0u) {
    var t = 0.0;
    for (var other = 0u; other < SUBGROUPS; other++) {
      t += bitcast<f32>(ring[other].x);
    }
    slots[slot + LOWER_TILES * 64u + TILES * 8u] = vec4f(t * params.unscale, 0.0, 0.0, 0.0);
  }
{%- endif %}
{%- unless RATING_ROW %}
  if (thread < 16u) {
    slots[slot + (LOWER_TILES - 1u) * 64u + thread * 4u + 2u] = vec4f();
  }
{%- endunless %}
}
