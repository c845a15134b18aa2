// Copies rows without their padding, one value per thread. Values are copied as u32, so NaN keeps its bits.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.count) {
    let value = params.first + at;
    let row = value / params.columns;
    rows[at] = padded[row * params.stride + (value - row * params.columns)];
  }
}
