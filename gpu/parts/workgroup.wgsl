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

#part share-of-rows
// Finds the rows of a workgroup: `number` of the workgroup, and `first` of its ROWS rows of [from_row,
// to_row).
  let number = group.y * groups.x + group.x;
  let first = params.from_row + number * ROWS;
  if (first >= params.to_row) {
    return;
  }

#part add-threads
// Adds the values of `sum` of all THREADS threads of the workgroup; the result is in partial[0].
  partial[thread] = sum;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
  }

#part sum-threads
// Adds the values of `sum` of all THREADS threads, and writes the result to sums[number].
  #import parts/add-threads
  if (thread == 0) {
    sums[number] = partial[0];
  }
