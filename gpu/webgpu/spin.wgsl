@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) thread: vec3u) {
  var state = thread.x + 1u;
  for (var round = 0u; round < params.rounds; round++) {
    state = state * 1664525u + 1013904223u;
  }
  // Almost never true, but the compiler cannot know that.
  if (state == 0u) {
    result[0] = thread.x;
  }
}
