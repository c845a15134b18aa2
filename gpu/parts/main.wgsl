#part main
// The entry point, without its body: workgroup `group` of `groups`, and the number of the thread in it.
@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
)

#part main-by-id
// The same, for shaders in which a group is one of something else.
@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32
)

#part number
// The workgroup's number, for one entry of a list of `count` entries.
let number = group.y * groups.x + group.x;
if (number >= params.count) {
  return;
}
