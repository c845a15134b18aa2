// Sum of (theta_v^T v) theta_v over the ratings of parts of rows, for a vector v of the row, into the part's slot (gradients.ts), a workgroup a part. A tile of theta passes through workgroup
// memory: LANES threads have the product of a rating, then each thread has its features of the sum.
//
// With FIRST v is x, and a rating counts r_v - theta_v^T x instead: the residual. With it come the sums of r_v and r_v theta_v^T x and, with biases, of theta_v.

var<workgroup> tile: array<vec4f, TILE * TILE_QUADS>;
var<workgroup> own: array<vec4f, QUADS>;
var<workgroup> shares: array<f32, THREADS>;
var<workgroup> factors: array<f32, TILE>;

// The sum of a number of the first TILE threads.
fn total(mine: f32, thread: u32) -> f32 {
  workgroupBarrier();
  shares[thread] = mine;
  workgroupBarrier();
  var sum = 0.0;
  for (var other = 0u; other < TILE; other++) {
    sum += shares[other];
  }
  return sum;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first rating, ratings, slot.
  let part = work[number];
  let end = part.y + part.z;
  for (var quad = thread; quad < QUADS; quad += THREADS) {
    own[quad] = vectors[part.x * QUADS + quad];
  }
{%- for i in owned %}
  var sum_{{ i }} = vec4f();
{%- if sums_rows %}
  var rows_{{ i }} = vec4f();
{%- endif %}
{%- endfor %}
  var rated = 0.0;
  var along = 0.0;
  for (var at = part.y; at < end; at += TILE) {
    workgroupBarrier();
    for (var k = thread; k < TILE * QUADS; k += THREADS) {
      let rating = k / QUADS;
      let quad = k % QUADS;
      var theta = vec4f();
      if (at + rating < end) {
        theta = fixed[indices[at + rating] * QUADS + quad];
      }
      tile[rating * TILE_QUADS + quad] = theta;
    }
    workgroupBarrier();
    var share = 0.0;
    for (var quad = thread % LANES; quad < QUADS; quad += LANES) {
      share += dot(tile[thread / LANES * TILE_QUADS + quad], own[quad]);
    }
    shares[thread] = share;
    workgroupBarrier();
    if (thread < TILE) {
      var product = 0.0;
      for (var lane = 0u; lane < LANES; lane++) {
        product += shares[thread * LANES + lane];
      }
      let inside = at + thread < end;
{%- if FIRST or implicit %}
      let rating = select(0.0, values[min(at + thread, end - 1)], inside);
{%- endif %}
{%- if implicit %}
      let weight = params.alpha * abs(rating);
{%- else %}
      let weight = 1.0;
{%- endif %}
{%- if FIRST %}
{%- if implicit %}
      let goal = select(0.0, params.base + params.alpha * rating, rating > 0.0);
{%- else %}
      let goal = rating;
{%- endif %}
      rated += goal;
      along += goal * product;
      factors[thread] = select(0.0, goal - weight * product, inside);
{%- else %}
      factors[thread] = select(0.0, weight * product, inside);
{%- endif %}
    }
    workgroupBarrier();
{%- for i in owned %}
    { let quad = min(thread + {{ i }} * THREADS, QUADS - 1);
      for (var rating = 0u; rating < TILE; rating++) {
        let theta = tile[rating * TILE_QUADS + quad];
        sum_{{ i }} = fma(vec4f(factors[rating]), theta, sum_{{ i }});
{%- if sums_rows %}
        rows_{{ i }} += theta;
{%- endif %}
      }
    }
{%- endfor %}
  }
  let slot = part.w * SLOT_QUADS;
{%- for i in owned %}
  if (thread + {{ i }} * THREADS < QUADS) {
    slots[slot + thread + {{ i }} * THREADS] = sum_{{ i }};
{%- if sums_rows %}
    slots[slot + QUADS + 1 + thread + {{ i }} * THREADS] = rows_{{ i }};
{%- endif %}
  }
{%- endfor %}
{%- if FIRST %}
  let all_rated = total(rated, thread);
  let all_along = total(along, thread);
  if (thread == 0) {
    slots[slot + QUADS] = vec4f(0.0, all_rated, all_along, 0.0);
  }
{%- endif %}
}
