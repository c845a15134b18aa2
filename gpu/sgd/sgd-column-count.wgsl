// Counts the ratings of each column. A workgroup has RATINGS adjacent ratings.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let first = (group.y * groups.x + group.x) * RATINGS;
  for (var at = first + thread; at < min(first + RATINGS, params.ratings); at += THREADS) {
    atomicAdd(&counts[indices[at]], 1u);
  }
}
