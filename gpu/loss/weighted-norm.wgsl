// Sums n_u^exponent |x_u|^2 and the weighted squares of the features over the rows with ratings, one pair of partial sums for each workgroup; the host adds them up in double precision. The threads
// walk along the ROWS rows of a workgroup side by side, four elements each.

var<workgroup> partial: array<vec2f, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  {% render 'parts/share-of-rows' %}
  let quads = params.stride / 4;
  let end = min(ROWS, params.to_row - first) * quads;
  var sum = vec2f();
  for (var at = thread; at < end; at += THREADS) {
    let row = first + at / quads;
    let x = factors[first * quads + at];
    let count = f32(offsets[row + 1] - offsets[row]);
    var weight = count;
    if (params.exponent != 1.0) {
      weight = select(0.0, exp2(params.exponent * log2(max(count, 1.0))), count > 0.0);
    }
    var weights = vec4f(params.others);
    if (at % quads == 0u) {
      weights = vec4f(params.first, params.second, params.others, params.others);
    }
    if (count > 0.0) {
      sum += vec2f(weight * dot(x, x), dot(weights * x, x));
    }
  }
  {% render 'parts/sum-threads' %}
}
