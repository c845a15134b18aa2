// Sums the rows' objectives, which are stored after the lowest bad row. Writes a copy of the lowest bad row
// and then one sum for each workgroup, so that one download has both.

var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  #import parts/share-of-rows
  var sum = 0.0;
  for (var row = first + thread; row < min(first + ROWS, params.to_row); row += THREADS) {
    sum += bitcast<f32>(status[TOLD + row]);
  }
  #import parts/add-threads
  if (thread == 0) {
    results[1 + number] = bitcast<u32>(partial[0]);
    if (number == 0) {
      results[0] = status[0];
    }
  }
}
