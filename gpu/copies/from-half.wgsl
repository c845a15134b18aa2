// Converts a half mirror to a float32 matrix, four features a thread.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.quads) {
    let packed = half[at];
    factors[at] = vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y));
  }
}
