// Adds one matrix to another, four numbers a thread.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let number = (group.y * groups.x + group.x) * THREADS + thread;
  if (number < params.fours) {
    sum[params.first + number] += addend[params.first + number];
  }
}
