// Template: loops are unrolled, so that x, r, p and q stay in registers.
// Solves rows of few ratings by conjugate gradients that never form A. The product A p = sum of theta_v
// (theta_v^T p) + lambda n p is computed from the row's ratings, whose theta_v are in workgroup memory. A
// workgroup has ROWS rows, and LANES threads share a row. A row that has converged continues with steps of
// length 0, so that all threads reach the same barriers.

var<workgroup> columns: array<u32, ROWS * TILE>;

{% render 'parts/tile-declarations', quad_type: stored, half: half %}
{% render 'parts/row-total' %}
{% render 'parts/write-objective' %}
{% render 'parts/finite' %}
{% render 'parts/write-row', half: false %}
{% render 'parts/row-shift' %}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let batch = thread / LANES;
  let lane = thread % LANES;
  let number = (id.y * size.x + id.x) * ROWS + batch;
  let exists = number < params.count;
  // Entry: row, first rating, ratings, 0.
  let entry = work[min(number, params.count - 1)];
  let row = entry.x;
  let at = entry.y;
  let n = entry.z;
  let inside = min(n, TILE);
  let base = batch * TILE;
  let shift = shift_of(row);
{%- if biases %}
  let weight = weight_of(row, n);
{%- endif %}
{%- for i in owned %}
  let quad_{{ i }} = lane + {{ i }} * LANES;
  var x_{{ i }} = vec4f();
  var r_{{ i }} = vec4f();
  var p_{{ i }} = vec4f();
  var s_{{ i }} = vec4f();
  if (quad_{{ i }} < QUADS) {
    x_{{ i }} = factors[row * QUADS + quad_{{ i }}];
    own[batch * QUADS + quad_{{ i }}] = x_{{ i }};
  }
{%- endfor %}
  for (var k = lane; k < inside; k += LANES) {
    columns[base + k] = indices[at + k];
  }
  workgroupBarrier();
  for (var place = lane; place < inside * QUADS; place += LANES) {
    let k = place / QUADS;
    let quad = place % QUADS;
    tile[(base + k) * PITCH + quad] = fixed[columns[base + k] * QUADS + quad];
  }
  var rated_share = 0.0;
  var along_share = 0.0;
  {% render 'parts/tile-product', owned: owned, biases: biases, implicit: false, first: true, split: SPLIT, padded: false %}
  let of_ratings = totals_among(LANES, vec2f(rated_share, along_share), thread);
  let rated = of_ratings.x;
  let along = of_ratings.y;
  var rho = 0.0;
  var enough = 0.0;
  var objective = 0.0;
  {% render 'parts/cg-begin', owned: owned, biases: biases, tolerances: tolerances %}
  for (var step = 0u; step < params.steps; step++) {
{%- for i in owned %}
    var q_{{ i }} = vec4f();
    if (quad_{{ i }} < QUADS) { own[batch * QUADS + quad_{{ i }}] = p_{{ i }}; }
{%- endfor %}
    {% render 'parts/tile-product', owned: owned, biases: false, implicit: false, first: false, split: SPLIT, padded: false %}
    {% render 'parts/cg-advance', owned: owned, biases: biases %}
  }
  {% render 'parts/cg-end', owned: owned, biases: biases %}
}
