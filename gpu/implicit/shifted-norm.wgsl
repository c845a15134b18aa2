// Sums shift_u |x_u|^2 over rows, one partial sum for each workgroup, as weighted-norm does with the rows' ratings.

var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  {% render 'parts/share-of-rows' %}
  let quads = params.stride / 4;
  let end = min(ROWS, params.to_row - first) * quads;
  var sum = 0.0;
  for (var at = thread; at < end; at += THREADS) {
    let x = factors[first * quads + at];
    sum = fma(shifts[first + at / quads], dot(x, x), sum);
  }
  {% render 'parts/sum-threads' %}
}
