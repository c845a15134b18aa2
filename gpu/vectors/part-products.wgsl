// Template: loops are unrolled, so that a thread's features stay in registers.
// The matrix-free product A p: sums w_v (theta_v^T p) theta_v over the ratings of a part of a row, and writes
// the sum to the part's slot (layout: vectors.ts). One workgroup per part. Some rows of theta at a time (a
// tile) are loaded to workgroup memory.
//
// With FIRST, the vector is x, and the factor of theta_v is g_v - w_v theta_v^T x, which sums to the
// residual. The sums of g_v, of g_v theta_v^T x and, with biases, of theta_v are written too. For the weights
// w_v and the right sides g_v of explicit and implicit data see parts/cg/tile-product.wgsl.

{% render 'parts/tile-declarations', quad_type: stored, half: half %}
{% render 'parts/row-total' %}

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
  let thread = lane;
  let batch = 0u;
  let base = 0u;
  // Entry: row of the vectors, first rating, ratings, slot.
  let part = work[number];
  let end = part.y + part.z;
  for (var quad = lane; quad < QUADS; quad += LANES) {
    own[quad] = vectors[part.x * QUADS + quad];
  }
{%- for i in owned %}
  let quad_{{ i }} = lane + {{ i }} * LANES;
  var {{ sum }}_{{ i }} = vec4f();
{%- if sums_rows %}
  var s_{{ i }} = vec4f();
{%- endif %}
{%- endfor %}
  var rated_share = 0.0;
  var along_share = 0.0;
  for (var at = part.y; at < end; at += TILE) {
    let inside = min(end - at, TILE);
    workgroupBarrier();
    for (var place = lane; place < TILE * QUADS; place += LANES) {
      let k = place / QUADS;
      let quad = place % QUADS;
      var theta = {{ stored }}();
      if (k < inside) {
        theta = fixed[indices[at + k] * QUADS + quad];
      }
      tile[k * PITCH + quad] = theta;
    }
    {% render 'parts/tile-product', owned: owned, biases: sums_rows, implicit: implicit, first: FIRST, split: SPLIT, padded: true %}
  }
  let slot = part.w * SLOT_QUADS;
{%- for i in owned %}
  if (quad_{{ i }} < QUADS) {
    slots[slot + quad_{{ i }}] = {{ sum }}_{{ i }};
{%- if sums_rows %}
    slots[slot + QUADS + 1 + quad_{{ i }}] = s_{{ i }};
{%- endif %}
  }
{%- endfor %}
{%- if FIRST %}
  let of_ratings = totals_among(LANES, vec2f(rated_share, along_share), thread);
  let rated = of_ratings.x;
  let along = of_ratings.y;
  if (lane == 0) {
    slots[slot + QUADS] = vec4f(0.0, rated, along, 0.0);
  }
{%- endif %}
}
